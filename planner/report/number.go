package report

import (
	"math"
	"strconv"
	"strings"
)

// none stands for a figure that has no value.
const none = "–"

// sig writes v for people with n significant digits and no exponent.
func sig(v float64, n int) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return none
	case v == 0:
		return "0"
	}
	digits := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', min(max(digits, 0), 9), 64)
}

// trim writes v, a figure that was given, with at most four significant digits.
func trim(v float64) string {
	s := sig(v, 4)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// span writes an interval, to three digits.
func span(lo, hi float64) string { return sig(lo, 3) + " – " + sig(hi, 3) }

// percent writes a share.
func percent(share float64) string {
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return none
	}
	return strconv.FormatFloat(100*share, 'f', 1, 64) + " %"
}

// large writes a count in thousands, millions, billions or trillions: "70.6 B".
func large(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}} {
		if v >= u.size {
			return sig(v/u.size, 3) + u.name
		}
	}
	return sig(v, 3)
}

// figure is a number of a chart, written with six significant digits; null where
// it has no value.
type figure float64

// MarshalJSON never fails.
func (f figure) MarshalJSON() ([]byte, error) {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, v, 'g', 6, 64), nil
}

// nothing is the figure that has no value.
func nothing() figure { return figure(math.NaN()) }
