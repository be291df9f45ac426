package number

import (
	"math"
	"strconv"
)

// Float writes a number for machines, in the shortest form that reads back equal; NaN and
// infinities are empty.
func Float(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Fixed writes a number for people with so many decimals.
func Fixed(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// Significant writes a number with n significant digits and no exponent.
func Significant(v float64, n int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return Fixed(v, 0)
	}
	digits := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	return Fixed(v, min(max(digits, 0), 9))
}

// Percent writes a fraction as a percentage with one decimal.
func Percent(v float64) string { return Fixed(100*v, 1) + " %" }

// Figure writes a number with at most four significant digits, "-" for 0, which stands for an
// unknown value.
func Figure(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v == math.Trunc(v) && v < 1e9:
		return Fixed(v, 0)
	}
	return Significant(v, 4)
}

// Count writes a large number as 8.03 B or 355 M, "-" for 0.
func Count(v float64) string {
	switch {
	case v >= 1e9:
		return Significant(v/1e9, 3) + " B"
	case v > 0:
		return Significant(v/1e6, 3) + " M"
	}
	return "-"
}
