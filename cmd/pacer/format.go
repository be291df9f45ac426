package main

import (
	"math"
	"strconv"
)

func itoa(n int) string { return strconv.Itoa(n) }

// ftoa writes a float for machines: shortest form that reads back equal.
func ftoa(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// fixed writes a float for people.
func fixed(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// significant writes v with n significant digits and no exponent.
func significant(v float64, n int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fixed(v, 0)
	}
	digits := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	return fixed(v, min(max(digits, 0), 9))
}
