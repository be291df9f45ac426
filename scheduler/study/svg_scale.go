package study

import (
	"math"

	"github.com/pacer-ml/pacer/planner/report/chart"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// scale is an axis that is chosen by the figures on it.
type scale struct {
	chart.Axis
	least float64 // mean
}

func emptyScale() scale {
	return scale{chart.Axis{Lo: math.Inf(1), Hi: math.Inf(-1)}, math.Inf(1)}
}

// include makes room for a figure with its interval.
func (s *scale) include(i report.Interval) {
	for _, v := range []report.Number{i.Mean, i.Lo, i.Hi} {
		if v.Defined() {
			s.Lo, s.Hi = min(s.Lo, float64(v)), max(s.Hi, float64(v))
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
	case math.IsInf(s.Lo, 0):
		s.Lo, s.Hi = 0, 1
	case s.least > 0 && s.Hi > 5*s.least:
		s.Log, s.Lo = true, max(s.Lo, s.least/2)
	default:
		s.Lo = max(s.Lo-(s.Hi-s.Lo)*0.08, 0)
	}
	if s.Hi <= s.Lo {
		s.Hi = s.Lo + 1
	}
}
