package trace

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets/internal/table"
)

// record is a row of a trace, with readers for what traces hold: times, dates, devices.
type record struct {
	*table.Record
	notes []string // remarks on the row, which is read anyway
}

// leaveOut records that the row is valid but has no job to schedule.
func (r *record) leaveOut(why string) { r.FailRow(rowNote{ErrNoJob, why}) }

// maxSeconds bounds times of traces: a hundred years, well within a time.Duration.
const maxSeconds = 100 * 365 * 24 * 3600

// seconds returns the time >= 0 in a column, 0 for an empty cell.
func (r *record) seconds(col string) time.Duration {
	v := r.AtLeast0(col)
	if v > maxSeconds {
		r.Fail(col, errors.New("is more than a hundred years"))
		return 0
	}
	return seconds(v)
}

// seconds returns a time of v seconds, at most maxSeconds, to the nanosecond.
func seconds(v float64) time.Duration { return time.Duration(math.Round(v * float64(time.Second))) }

// dateForms are how traces write dates; without a zone they are read as UTC.
var dateForms = []string{time.DateTime, "2006-01-02 15:04:05Z07:00"}

// parseDate parses a date to a time since 1970.
func parseDate(s string) (time.Duration, error) {
	for _, form := range dateForms {
		t, err := time.Parse(form, s)
		if err != nil {
			continue
		}
		if t.Unix() < 0 || t.Unix() > 2*maxSeconds {
			return 0, fmt.Errorf("is not between 1970 and %d", time.Unix(2*maxSeconds, 0).UTC().Year())
		}
		return time.Duration(t.UnixNano()), nil
	}
	return 0, errors.New("is no date like 2017-10-07 01:12:09")
}

// noDate reports whether the text stands for an unknown date.
func noDate(s string) bool {
	switch strings.ToLower(s) {
	case "", "none", "null", "nan", "nat", "na", "unknown":
		return true
	}
	return false
}

// date returns the date in a column as a time since 1970, false without one.
func (r *record) date(col string) (time.Duration, bool) {
	s := r.Str(col)
	if noDate(s) {
		return 0, false
	}
	d, err := parseDate(s)
	if err != nil {
		r.Fail(col, err)
	}
	return d, true
}

// needDate is date that fails without one.
func (r *record) needDate(col string) time.Duration {
	d, ok := r.date(col)
	if !ok {
		r.Fail(col, errors.New("is missing"))
	}
	return d
}

// needSeconds is seconds that fails for an empty cell.
func (r *record) needSeconds(col string) time.Duration {
	r.Need(col)
	return r.seconds(col)
}

// Reasons why rows of cluster traces hold no job.
const (
	whyNoDevices = "asks for no devices"
	whyNoTime    = "ran for no time"
	whyNoStart   = "has no start, or no end"
	whyShare     = "asks for a fraction of a device, counted as a whole one"
)

// runTime is the seconds of column duration; without them there is nothing to schedule.
func (r *record) runTime() time.Duration {
	if noDate(r.Str("duration")) {
		r.leaveOut(whyNoStart)
		return 0
	}
	d := r.seconds("duration")
	if d == 0 {
		r.leaveOut(whyNoTime)
	}
	return d
}

// between returns the time from start to end, in columns of these names.
func (r *record) between(startCol string, start time.Duration, endCol string, end time.Duration) time.Duration {
	switch {
	case end < start:
		r.Fail(endCol, fmt.Errorf("is before %s %s", startCol, r.Str(startCol)))
	case end == start:
		r.leaveOut(whyNoTime)
	}
	return end - start
}

// devices returns the number of devices in a column, at least 1.
func (r *record) devices(col string) int {
	r.Need(col)
	n := r.Count(col)
	if n < 1 || n > table.MaxDevices {
		r.Fail(col, fmt.Errorf("is not a number of devices in 1..%d", table.MaxDevices))
		return 0
	}
	return n
}

// requested is devices for traces with rows that ask for none, which are left out.
func (r *record) requested(col string) int {
	if s := r.Str(col); s != "" && r.Float(col) == 0 {
		r.leaveOut(whyNoDevices)
		return 0
	}
	return r.devices(col)
}

// whole rounds a number of devices, possibly a fraction, up; col is its column, for errors.
func (r *record) whole(col string, n float64) int {
	switch {
	case !(n >= 0 && n <= table.MaxDevices):
		r.FailValue(col, fmt.Sprint(n), fmt.Errorf("in all is not a number of devices in 0..%d", table.MaxDevices))
		return 0
	case n == 0:
		r.leaveOut(whyNoDevices)
	case n != math.Trunc(n):
		r.notes = append(r.notes, whyShare)
	}
	return int(math.Ceil(n))
}

// gib is the bytes of a GiB.
const gib = 1 << 30

// scaled returns a number >= 0 in a column times factor, rounded; 0 for an empty cell.
func (r *record) scaled(col string, factor float64) int64 {
	v := math.Round(r.AtLeast0(col) * factor)
	if v > 1<<53 {
		r.Fail(col, errors.New("is too large"))
		return 0
	}
	return int64(v)
}

// flag returns the truth value in a column, false for an empty cell.
func (r *record) flag(col string) bool {
	switch strings.ToLower(r.Str(col)) {
	case "", "0", "false", "no":
		return false
	case "1", "true", "yes":
		return true
	}
	r.Fail(col, errors.New("is not 0 or 1"))
	return false
}
