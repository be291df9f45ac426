package order

import (
	"math"
	"slices"
)

// services is an empirical distribution of the total service of jobs, in device-seconds.
type services struct {
	at   []float64 // ascending
	mean float64
	// spent[k] is the total service of the n jobs if each is stopped at at[k]: the sum
	// over j of min(at[j], at[k]). Ascending.
	spent []float64
	next  []int // next[k] is the vertex after k of the upper concave hull of the points (spent[i], i), i >= k
}

// newServices returns the distribution of values. It sorts values in place.
func newServices(values []float64) services {
	slices.Sort(values)
	n := len(values)
	s := services{at: values, spent: make([]float64, n), next: make([]int, n)}
	for k, v := range values {
		s.spent[k] = s.spentAt(v, k)
	}
	if n > 0 {
		s.mean = s.spent[n-1] / float64(n)
	}
	for k := n - 1; k >= 0; k-- {
		v := k + 1
		for v < n && s.next[v] < n && s.slope(k, s.next[v]) >= s.slope(k, v) {
			v = s.next[v]
		}
		s.next[k] = v
	}
	return s
}

// slope is the number of jobs that end between at[i] and at[k] per device-second spent
// between them.
func (s *services) slope(i, k int) float64 { return float64(k-i) / (s.spent[k] - s.spent[i]) }

// cost returns the device-seconds that a job of attained service a costs per
// completion under the best quantum, the reciprocal of its Gittins index
//
//	G(a) = sup over D > 0 of P(S-a <= D | S > a) / E[min(S-a, D) | S > a]
//
//	S  total service of a job, distributed as s
//	a  attained service, device-seconds
//	D  quantum; the supremum is attained where a+D is a value of s
//
// It is infinite if no job of the history received more than a.
//
// Source: Gittins, J. R. Stat. Soc. B 41(2), 1979; Aalto, Ayesta and Righter, On
// the Gittins index in the M/G/1 queue, Queueing Systems 63, 2009, equation 1;
// in two dimensions Gu et al., Tiresias, NSDI 2019, section 3.2.
//
// If i of the n jobs received no more than a, the fraction for D = at[k]-a is
// (k+1-i) / (spent[k] - spent(a)), the slope of the line from the point of a to the point
// of k. The steepest such line is tangent to the hull of the points after a.
func (s *services) cost(a float64) float64 {
	n := len(s.at)
	i, _ := slices.BinarySearchFunc(s.at, a, func(v, a float64) int {
		if v <= a {
			return -1
		}
		return 1
	})
	if i == n {
		return math.Inf(1)
	}
	per := func(k int) float64 { // device-seconds per completion with the quantum at[k]-a
		return (s.spent[k] - s.spentAt(a, i)) / float64(k+1-i)
	}
	best := per(i)
	for k := s.next[i]; k < n; k = s.next[k] {
		c := per(k)
		if c > best {
			break
		}
		best = c
	}
	return best
}

// spentAt is the total service of the jobs if each is stopped at a; the first i receive
// less than a.
func (s *services) spentAt(a float64, i int) float64 {
	n := float64(len(s.at) - i)
	if i == 0 {
		return n * a
	}
	return s.spent[i-1] + n*(a-s.at[i-1])
}
