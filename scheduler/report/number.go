package report

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Number is a figure that may be undefined (NaN), such as the mean JCT when no job
// finished. It is written with at most nine decimals, so seconds are exact to the
// nanosecond. Undefined is null in JSON and empty in CSV.
type Number float64

// Undefined is the Number of a figure that has no value.
func Undefined() Number { return Number(math.NaN()) }

// Defined reports whether n has a value.
func (n Number) Defined() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// String returns the shortest decimal form of n, "" if it is undefined.
func (n Number) String() string {
	if !n.Defined() {
		return ""
	}
	s := strconv.FormatFloat(float64(n), 'f', -1, 64)
	if dot := strings.IndexByte(s, '.'); dot >= 0 && len(s)-dot-1 > 9 {
		s = strconv.FormatFloat(float64(n), 'f', 9, 64)
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// Fixed writes n with so many decimals, "-" if it is undefined.
func (n Number) Fixed(decimals int) string {
	if !n.Defined() {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'f', decimals, 64)
}

// MarshalJSON writes a JSON number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Defined() {
		return []byte("null"), nil
	}
	return []byte(n.String()), nil
}

// UnmarshalJSON reads a JSON number, or null.
func (n *Number) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*n = Undefined()
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("report: %q is not a number or null", b)
	}
	*n = Number(v)
	return nil
}

// Seconds writes d in seconds, exactly: "260", "0.000000001".
func Seconds(d time.Duration) string {
	sign, u := "", uint64(d)
	if d < 0 {
		sign, u = "-", -u
	}
	whole, nanos := u/1e9, u%1e9
	s := sign + strconv.FormatUint(whole, 10)
	if nanos == 0 {
		return s
	}
	return s + "." + strings.TrimRight(fmt.Sprintf("%09d", nanos), "0")
}

// Human writes a time in seconds for reading, in its two largest units:
// "59.4 s", "8 m 20 s", "1 h 02 m", "3 d 04 h". Undefined is "-".
func Human(n Number) string {
	s := float64(n)
	switch {
	case !n.Defined():
		return "-"
	case s <= -0.05:
		return "-" + Human(-n)
	case s < 0:
		return "0.0 s"
	case s < 59.95:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	}
	// The time is rounded to the smaller unit before it is split, so that no part
	// reaches its limit: 3599.7 s is 1 h 00 m.
	if secs := math.Round(s); secs < 3600 {
		return twoUnits(secs, 60, "m", "s")
	}
	if mins := math.Round(s / 60); mins < 24*60 {
		return twoUnits(mins, 60, "h", "m")
	}
	return twoUnits(math.Round(s/3600), 24, "d", "h")
}

func twoUnits(v, per float64, big, small string) string {
	return fmt.Sprintf("%.0f %s %02.0f %s", math.Floor(v/per), big, math.Mod(v, per), small)
}
