package trace

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Window is a part of a workload, by job number or by time. The zero Window is all of it.
type Window struct {
	byTime bool
	// first and last are job numbers by submission, from 0, both included; last < 0 means the last
	// job.
	first, last int
	// from and to are times since the trace began, to excluded; to < 0 means the end.
	from, to time.Duration
	text     string
}

// ParseWindow parses A-B: job numbers by submission, from 0, both included (3000-3999), or times
// since the trace began, the second excluded (1d-8d, 90m-2h30m, 0s-3600s). Without B the window
// extends to the end; "" is the whole workload.
func ParseWindow(s string) (Window, error) {
	w := Window{text: s, last: -1, to: -1}
	if s == "" {
		return w, nil
	}
	a, b, ok := strings.Cut(s, "-")
	if !ok || a == "" {
		return Window{}, badWindow(s)
	}
	var errA, errB error
	if w.first, errA = strconv.Atoi(a); errA == nil {
		if b != "" {
			w.last, errB = strconv.Atoi(b)
		}
		if errB != nil || b != "" && w.last < w.first {
			return Window{}, badWindow(s)
		}
		return w, nil
	}
	w.byTime = true
	w.from, errA = parseSpan(a)
	if b != "" {
		w.to, errB = parseSpan(b)
	}
	if errA != nil || errB != nil || b != "" && w.to <= w.from {
		return Window{}, badWindow(s)
	}
	return w, nil
}

func badWindow(s string) error {
	return fmt.Errorf("datasets: window %q is neither two ascending job numbers, such as 3000-3999, nor two ascending times, such as 1d-8d", s)
}

// parseSpan is time.ParseDuration with days.
func parseSpan(s string) (time.Duration, error) {
	var days int
	if n, rest, ok := strings.Cut(s, "d"); ok {
		var err error
		if days, err = strconv.Atoi(n); err != nil || days > 36500 {
			return 0, fmt.Errorf("%q is no number of days", n)
		}
		if s = rest; s == "" {
			s = "0s"
		}
	}
	d, err := time.ParseDuration(s)
	d += time.Duration(days) * 24 * time.Hour
	if err == nil && d < 0 {
		err = fmt.Errorf("%s is negative", s)
	}
	return d, err
}

// Times returns the times since the trace began, to excluded and 0 for the end; false if w is by job
// number.
func (w Window) Times() (from, to time.Duration, ok bool) {
	return w.from, max(w.to, 0), w.byTime || w.text == ""
}

// String returns the parsed text.
func (w Window) String() string { return w.text }

// Cut returns the jobs within w, given jobs by submission. Times are since the beginning of the
// window; by number that is the first job's submission.
func (w Window) Cut(jobs []spec.Job) []spec.Job {
	if w.text == "" {
		return jobs
	}
	lo, hi := min(w.first, len(jobs)), len(jobs)
	if w.last >= 0 {
		hi = min(w.last+1, len(jobs))
	}
	if w.byTime {
		lo = submittedBy(jobs, w.from)
		if hi = len(jobs); w.to >= 0 {
			hi = submittedBy(jobs, w.to)
		}
	}
	out := slices.Clone(jobs[lo:max(lo, hi)])
	start := w.from
	if !w.byTime && len(out) > 0 {
		start = out[0].Submit
	}
	for i := range out {
		moveJob(&out[i], out[i].Submit-start)
	}
	return out
}

// submittedBy returns how many jobs are submitted before t.
func submittedBy(jobs []spec.Job, t time.Duration) int {
	n, _ := slices.BinarySearchFunc(jobs, t, func(j spec.Job, t time.Duration) int {
		if j.Submit < t {
			return -1
		}
		return 1
	})
	return n
}

// moveJob changes the submission of j; the time to its deadline stays.
func moveJob(j *spec.Job, submit time.Duration) {
	if j.Deadline != 0 {
		j.Deadline += submit - j.Submit
	}
	j.Submit = submit
}

// ScaleLoad returns the jobs with the times between submissions divided by x: x = 2 doubles the
// load. Run times, and the times between submission and deadline, stay.
func ScaleLoad(jobs []spec.Job, x float64) ([]spec.Job, error) {
	if !(x > 0) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("datasets: load scale %g is not positive and finite", x)
	}
	out := slices.Clone(jobs)
	for i := range out {
		submit := out[i].Submit.Seconds() / x
		if submit > maxSeconds {
			return nil, fmt.Errorf("datasets: load scale %g: job %s would be submitted after more than a hundred years", x, out[i].ID)
		}
		moveJob(&out[i], seconds(submit))
	}
	return out, nil
}
