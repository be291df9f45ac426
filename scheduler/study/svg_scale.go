package study

import (
	"math"

	"github.com/pacer-ml/pacer/planner/report/chart"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// scale is an axis with a range and kind that depend on its figures.
type scale struct {
	chart.Axis
	least float64 // least mean
}

func emptyScale() scale {
	return scale{chart.Axis{Lo: math.Inf(1), Hi: math.Inf(-1)}, math.Inf(1)}
}

// include extends the range to a figure and its interval.
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

// choose sets the kind and the ends of the axis after the last include. Long intervals
// of small means are cut off.
func (s *scale) choose() {
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
