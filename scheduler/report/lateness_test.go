package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

// lateRun has guaranteed jobs 1 to 4 and a best-effort job 5. By fifo-backfill job 1 is early, 2 late by 30 s, 3 by
// 100 s, and 4 never ends.
func lateRun() *sim.Result {
	r := &sim.Result{Policy: "p", Devices: 8}
	for i, end := range []time.Duration{50, 130, 200, 0, 900} {
		j := job(string(rune('1'+i)), 0, 0, end*time.Second)
		j.Job.Guaranteed, j.Finished = i < 4, end > 0
		j.Backfill, j.AsSubmitted = 100*time.Second, 40*time.Second
		r.Jobs = append(r.Jobs, j)
	}
	return r
}

func TestLateness(t *testing.T) {
	s := Summarize(lateRun(), Score{})
	if d := cmp.Diff(&Lateness{Known: 4, Late: 2, WorstSec: 100, MeanSec: 130. / 3}, s.LateBackfill, roundoff); d != "" {
		t.Errorf("by fifo-backfill (-want +got):\n%s", d)
	}
	if d := cmp.Diff(&Lateness{Known: 4, Late: 3, WorstSec: 160, MeanSec: (10 + 90 + 160) / 3.}, s.LateSubmitted, roundoff); d != "" {
		t.Errorf("as submitted (-want +got):\n%s", d)
	}
	if s := Summarize(lateRun(), Score{First: "5", Last: "5"}); s.LateBackfill != nil || s.LateSubmitted != nil {
		t.Errorf("best-effort jobs have a lateness: %+v", s)
	}
	unknown := lateRun()
	unknown.SetBackfill(nil)
	if s := Summarize(unknown, Score{}); s.LateBackfill != nil {
		t.Errorf("lateness without a reference: %+v", s.LateBackfill)
	}
}

// TestLatenessIsShown: table and page show the late jobs, the file of jobs each of them.
func TestLatenessIsShown(t *testing.T) {
	var table, page, jobs strings.Builder
	if err := WriteTable(&table, SummarizeAll([]*sim.Result{lateRun()}, Score{})); err != nil {
		t.Fatal(err)
	}
	mustWriteHTML(t, &page, HTMLInput{Results: []*sim.Result{lateRun()}})
	mustWriteJobs(t, &jobs, CSV, []*sim.Result{lateRun()}, Score{})
	for name, c := range map[string]struct{ text, want string }{
		"table": {table.String(), "1 m 40 s"},
		"page":  {page.String(), `<td class="num">4</td><td class="num">3</td><td class="num">2 m 40 s</td><td class="num">1 m 27 s</td><td class="num">2</td><td class="num">1 m 40 s</td><td class="num">43.3 s</td>`},
		"jobs":  {jobs.String(), ",1,40,160,100,100\n"},
		"early": {jobs.String(), ",1,40,10,100,-50\n"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s: want %s in:\n%s", name, c.want, c.text)
		}
	}
}

// TestFailedRunIsNamed: a run without figures is a row of dashes, with its reason below and in every format.
func TestFailedRunIsNamed(t *testing.T) {
	results := []*sim.Result{{Policy: "broken", Failed: "no such placement"}, lateRun()}
	runs := SummarizeAll(results, Score{})
	var table, csv, json, page strings.Builder
	for _, err := range []error{WriteTable(&table, runs), WriteCSV(&csv, runs), WriteJSON(&json, runs), WriteHTML(&page, HTMLInput{Results: results, Gantts: []*Gantt{nil, nil}})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"table": {table.String(), "no result: broken: no such placement\n"},
		"csv":   {csv.String(), ",no such placement\n"},
		"json":  {json.String(), `"error": "no such placement"`},
		"page":  {page.String(), "no result: no such placement"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s: want %s in:\n%s", name, c.want, c.text)
		}
	}
}
