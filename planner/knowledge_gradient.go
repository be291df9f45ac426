package planner

import (
	"cmp"
	"math"
	"slices"
)

// knowledgeGradient returns the expected rise of the largest mean after a
// measurement that moves mean[i] by shift[i]·Z, Z standard normal:
//
//	E[max(mean + shift·Z)] − max(mean) = Σ (b[i+1]−b[i])·f(−|c[i]|),  f(z) = φ(z) + z·Φ(z)
//
// over the lines a + b·Z of the upper envelope, by ascending slope b; line i+1 is
// the largest from Z = c[i] on. The result is 0 or more. Source: Frazier,
// Powell and Dayanik, "The Knowledge-Gradient Policy for Correlated Normal
// Beliefs", INFORMS Journal on Computing 2009, section 3.1 and algorithm 1.
func knowledgeGradient(mean, shift []float64) float64 {
	lines := make([]line, len(mean))
	for i := range mean {
		lines[i] = line{mean[i], shift[i]}
	}
	top, from := envelope(lines)
	sum := 0.0
	for i := 1; i < len(top); i++ {
		z := -math.Abs(from[i])
		sum += (top[i].slope - top[i-1].slope) * (density(z) + z*cumulative(z))
	}
	return max(sum, 0)
}

// line is value + slope·Z.
type line struct{ value, slope float64 }

// envelope returns the upper envelope of lines by ascending slope. Line i is the
// largest from Z = from[i] on; from[0] is -Inf. It sorts lines.
func envelope(lines []line) (top []line, from []float64) {
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.slope, b.slope), cmp.Compare(a.value, b.value))
	})
	for i, l := range lines {
		if i+1 < len(lines) && lines[i+1].slope == l.slope {
			continue // the next is parallel and not below
		}
		at := math.Inf(-1)
		for len(top) > 0 {
			last := top[len(top)-1]
			at = (last.value - l.value) / (l.slope - last.slope)
			if at > from[len(from)-1] {
				break
			}
			top, from = top[:len(top)-1], from[:len(from)-1]
			at = math.Inf(-1)
		}
		top, from = append(top, l), append(from, at)
	}
	return top, from
}

func density(z float64) float64 { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }

func cumulative(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }
