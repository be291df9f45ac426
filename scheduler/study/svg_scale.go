package study

import (
	"math"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// scale is an axis: what it begins and ends with, and the least mean on it.
type scale struct {
	lo, hi, least float64
	log           bool // whether it is logarithmic
}

func emptyScale() scale { return scale{lo: math.Inf(1), hi: math.Inf(-1), least: math.Inf(1)} }

// include makes room for a figure with its interval.
func (s *scale) include(i report.Interval) {
	for _, v := range []report.Number{i.Mean, i.Lo, i.Hi} {
		if v.Defined() {
			s.lo, s.hi = min(s.lo, float64(v)), max(s.hi, float64(v))
		}
	}
	if i.Mean.Defined() {
		s.least = min(s.least, float64(i.Mean))
	}
}

// settle chooses the kind of axis and its ends once everything is included. Long
// intervals of small means are cut off.
func (s *scale) settle() {
	switch {
	case math.IsInf(s.lo, 0):
		s.lo, s.hi = 0, 1
	case s.least > 0 && s.hi > 5*s.least:
		s.log, s.lo = true, max(s.lo, s.least/2)
	default:
		s.lo = max(s.lo-(s.hi-s.lo)*0.08, 0)
	}
	if s.hi <= s.lo {
		s.hi = s.lo + 1
	}
}

// at returns where a value is, from 0 at the beginning to 1 at the end.
func (s *scale) at(v float64) float64 {
	v = min(max(v, s.lo), s.hi)
	if s.log {
		return math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	}
	return (v - s.lo) / (s.hi - s.lo)
}

// marks returns round values in [lo, hi], some three to eight.
func marks(lo, hi float64, logarithmic bool) []float64 {
	var out []float64
	if logarithmic {
		for e := math.Floor(math.Log10(lo)); e <= math.Log10(hi); e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, e); v >= lo && v <= hi {
					out = append(out, v)
				}
			}
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10(hi-lo)))
	for _, part := range []float64{5, 2, 1} {
		if (hi-lo)/(step/part) <= 8 {
			step /= part
			break
		}
	}
	for k := math.Ceil(lo / step); k*step <= hi; k++ {
		out = append(out, k*step)
	}
	return out
}
