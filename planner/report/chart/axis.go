package chart

import "math"

// Axis is a range of values, Lo below Hi; Log needs Lo above 0.
type Axis struct {
	Lo, Hi float64
	Log    bool
}

// At returns where a value is, from 0 at Lo to 1 at Hi. Values beyond are at the ends.
func (a Axis) At(v float64) float64 {
	v = min(max(v, a.Lo), a.Hi)
	if a.Log {
		return math.Log(v/a.Lo) / math.Log(a.Hi/a.Lo)
	}
	return (v - a.Lo) / (a.Hi - a.Lo)
}

// Marks returns round values on a, some three to eight.
func (a Axis) Marks() []float64 {
	var out []float64
	if a.Log {
		for e := math.Floor(math.Log10(a.Lo)); e <= math.Log10(a.Hi); e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, e); v >= a.Lo && v <= a.Hi {
					out = append(out, v)
				}
			}
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10(a.Hi-a.Lo)))
	for _, part := range []float64{5, 2, 1} {
		if (a.Hi-a.Lo)/(step/part) <= 8 {
			step /= part
			break
		}
	}
	for k := math.Ceil(a.Lo / step); k*step <= a.Hi; k++ {
		out = append(out, k*step)
	}
	return out
}
