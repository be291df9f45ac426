package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// JobSet is a set of jobs.
type JobSet map[spec.JobID]bool

// Score selects the jobs that count by the number at the end of their id: "7" and
// "vit-7" are both job 7. Bounds are inclusive, an empty one is open, and the zero
// Score selects every job. With a bound, ids without a number do not count.
type Score struct {
	First, Last spec.JobID
	Only        *JobSet // of these jobs; nil = of all
}

// ParseScore reads FIRST-LAST, such as "300-600", "vit-3-vit-90" (split at the
// middle dash), "300-" or "-600". The empty string is every job.
func ParseScore(s string) (Score, error) {
	if s == "" {
		return Score{}, nil
	}
	bad := fmt.Errorf("report: score %q is not FIRST-LAST, such as 300-600", s)
	dashes := strings.Count(s, "-")
	if dashes%2 == 0 {
		return Score{}, bad
	}
	at := -1
	for range dashes/2 + 1 {
		at += 1 + strings.IndexByte(s[at+1:], '-')
	}
	sc := Score{First: spec.JobID(s[:at]), Last: spec.JobID(s[at+1:])}
	if sc == (Score{}) {
		return Score{}, bad
	}
	return sc, sc.Validate()
}

// Validate reports a bound without a number, and bounds in the wrong order.
func (s Score) Validate() error {
	first, last := uint64(0), uint64(math.MaxUint64)
	for _, b := range []struct {
		id  spec.JobID
		num *uint64
	}{{s.First, &first}, {s.Last, &last}} {
		if b.id == "" {
			continue
		}
		n, ok := jobNumber(b.id)
		if !ok {
			return fmt.Errorf("report: score bound %q does not end in a job number", b.id)
		}
		*b.num = n
	}
	if first > last {
		return fmt.Errorf("report: score %s: the first job comes after the last", s)
	}
	return nil
}

// all reports that there are no bounds.
func (s Score) all() bool { return s.First == "" && s.Last == "" }

// String writes s as ParseScore reads it.
func (s Score) String() string {
	if s.all() {
		return ""
	}
	return string(s.First) + "-" + string(s.Last)
}

// words describes s, "" for every job.
func (s Score) words() string {
	switch {
	case s.all():
		return ""
	case s.Last == "":
		return "from " + string(s.First) + " on"
	case s.First == "":
		return "up to " + string(s.Last)
	}
	return string(s.First) + " to " + string(s.Last)
}

// Has reports whether the job counts.
func (s Score) Has(id spec.JobID) bool {
	if s.Only != nil && !(*s.Only)[id] {
		return false
	}
	if s.all() {
		return true
	}
	n, ok := jobNumber(id)
	if !ok {
		return false
	}
	if first, ok := jobNumber(s.First); ok && n < first {
		return false
	}
	if last, ok := jobNumber(s.Last); ok && n > last {
		return false
	}
	return true
}

// jobNumber returns the number at the end of an id.
func jobNumber(id spec.JobID) (uint64, bool) {
	digits := len(id)
	for digits > 0 && '0' <= id[digits-1] && id[digits-1] <= '9' {
		digits--
	}
	n, err := strconv.ParseUint(string(id[digits:]), 10, 64)
	return n, err == nil
}
