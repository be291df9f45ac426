package trace

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func hourlyJobs() []spec.Job {
	var jobs []spec.Job
	for i := range 6 {
		submit := time.Duration(i) * time.Hour
		jobs = append(jobs, spec.Job{ID: spec.JobID('a' + rune(i)), Devices: 1, Duration: time.Minute, Submit: submit, Deadline: submit + 10*time.Hour})
	}
	jobs[5].Deadline = 0
	return jobs
}

func jobTimes(jobs []spec.Job) string {
	var parts []string
	for _, j := range jobs {
		parts = append(parts, string(j.ID)+"@"+j.Submit.String())
	}
	return strings.Join(parts, " ")
}

func TestWindowCut(t *testing.T) {
	for text, want := range map[string]string{
		"":         "a@0s b@1h0m0s c@2h0m0s d@3h0m0s e@4h0m0s f@5h0m0s",
		"0-1":      "a@0s b@1h0m0s",
		"4-4":      "e@0s",
		"4-":       "e@0s f@1h0m0s",
		"4-99":     "e@0s f@1h0m0s",
		"7-9":      "",
		"0s-1h":    "a@0s",
		"1h-3h":    "b@0s c@1h0m0s",
		"30m-1h1s": "b@30m0s",
		"0d-1d":    "a@0s b@1h0m0s c@2h0m0s d@3h0m0s e@4h0m0s f@5h0m0s",
		"0d3h-":    "d@0s e@1h0m0s f@2h0m0s",
		"1d12h-2d": "",
	} {
		w, err := ParseWindow(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := w.Cut(hourlyJobs())
		if jobTimes(got) != want || w.String() != text {
			t.Errorf("%q: %s, want %s", text, jobTimes(got), want)
		}
		for _, j := range got {
			if j.ID != "f" && j.Deadline-j.Submit != 10*time.Hour || j.ID == "f" && j.Deadline != 0 {
				t.Errorf("%q: %s has %v to its deadline", text, j.ID, j.Deadline-j.Submit)
			}
		}
	}
	for _, text := range []string{"-", "-5", "5", "5-4", "1h-1h", "2h-1h", "a-b", "1-2h", "1h-2", "xd-2d", "99999999d-", "1h-2h-3h", "0s--1h"} {
		if w, err := ParseWindow(text); err == nil || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: %+v, %v", text, w, err)
		}
	}
}

func TestScaleLoad(t *testing.T) {
	jobs := hourlyJobs()
	got, err := ScaleLoad(jobs, 4)
	if err != nil || jobTimes(got) != "a@0s b@15m0s c@30m0s d@45m0s e@1h0m0s f@1h15m0s" {
		t.Fatalf("%s, %v", jobTimes(got), err)
	}
	if got[3].Deadline != 45*time.Minute+10*time.Hour || got[3].Duration != time.Minute || got[5].Deadline != 0 {
		t.Errorf("%+v", got[3])
	}
	if d := cmp.Diff(hourlyJobs(), jobs); d != "" {
		t.Errorf("the jobs given were changed:\n%s", d)
	}
	for _, x := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-9} {
		if got, err := ScaleLoad(jobs, x); err == nil {
			t.Errorf("%g: %s", x, jobTimes(got))
		}
	}
}
