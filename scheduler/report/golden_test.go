package report

import (
	"bytes"
	"html/template"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	pageparts "github.com/pacer-ml/pacer/planner/report/page"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// small is two runs of six jobs on two devices, with every outcome of a job.
func small() []*sim.Result {
	s := time.Second
	moved := job("4", 30*s, 40*s, 100*s+250*time.Millisecond)
	moved.Restarts, moved.Preemptions, moved.Attained = 2, 1, 45.25
	moved.Failures, moved.LostSec = 1, 36
	refused := job("5", 35*s, 0, 0)
	refused.Finished, refused.Rejected, refused.Attained = false, "16 devices requested, the cluster has 2", 0
	cut := job("6", 40*s, 90*s, 0)
	cut.Finished, cut.Attained = false, 10.25
	return []*sim.Result{
		{
			Policy: "fifo", Devices: 2, Elapsed: 1500 * time.Microsecond,
			Jobs:  []sim.JobRecord{job("1", 0, 0, 40*s), job("2", 0, 0, 10*s), job("3", 5*s, 10*s, 90*s), moved, refused, cut},
			Usage: []sim.Usage{{At: 0, Held: 2}, {At: 5 * s, Held: 2, Waiting: 1}, {At: 10 * s, Held: 2}, {At: 90 * s, Held: 1}, {At: 100*s + 250*time.Millisecond}},
		},
		{
			Policy: "rubick:shrink=true,floor=0.5", Devices: 2, Elapsed: 2 * time.Second,
			Jobs: []sim.JobRecord{job("1", 0, 0, 20*s), job("2", 0, 0, 10*s), job("3", 5*s, 10*s, 30*s),
				job("4", 30*s, 30*s, 60*s), job("5", 35*s, 35*s, 60*s), job("6", 40*s, 60*s, 71*s)},
			Usage:    []sim.Usage{{At: 0, Held: 2}, {At: 60 * s, Held: 1}, {At: 71 * s}},
			Lookups:  sim.Lookups{Exact: 40, Interpolated: 3, Modelled: 1},
			Warnings: []string{`job 3: <b>"measured"</b> & modelled`},
		},
	}
}

func TestGolden(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []struct {
		file  string
		write func() error
	}{
		{"runs.txt", func() error { return WriteTable(&b, SummarizeAll(small(), Score{})) }},
		{"runs.json", func() error { return WriteJSON(&b, SummarizeAll(small(), Score{})) }},
		{"runs.csv", func() error { return WriteCSV(&b, SummarizeAll(small(), Score{})) }},
		{"runs_scored.json", func() error { return WriteJSON(&b, SummarizeAll(small(), Score{First: "5", Last: "6"})) }},
		{"jobs.csv", func() error { return WriteJobs(&b, CSV, small(), Score{}) }},
		{"jobs_scored.csv", func() error { return WriteJobs(&b, CSV, small(), Score{First: "3", Last: "4"}) }},
		{"page.html", func() error {
			// The page without style and scripts, which never change.
			p := newPage(HTMLInput{
				Title: "Two policies <on> a small cluster", Results: small(), Score: Score{Last: "6"},
				Facts: []Fact{{"cluster", "1x2"}, {"seed", ""}, {"command", `pacer simulate --workload "a b.csv" && true`}},
				Notes: []string{"A start takes no time."},
			})
			p.Style, p.Plot, p.Script = "/* style */", "/* uPlot */", "/* script */"
			return pageTemplate.Execute(&b, p)
		}},
	} {
		t.Run(c.file, func(t *testing.T) {
			b.Reset()
			if err := c.write(); err != nil {
				t.Fatal(err)
			}
			spectest.Golden(t, filepath.Join("testdata", c.file), b.Bytes())
		})
	}
}

func TestHTMLIsWhole(t *testing.T) {
	in := HTMLInput{Results: small(), Notes: []string{"</script><script>alert(1)</script>"}}
	var one, two bytes.Buffer
	mustWriteHTML(t, &one, in)
	mustWriteHTML(t, &two, in)
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("equal inputs give different pages")
	}
	for _, want := range []template.JS{pageparts.Plot, pageScript} {
		if !bytes.Contains(one.Bytes(), []byte(want)) {
			t.Errorf("the page lacks a script of %d bytes", len(want))
		}
	}
	if !bytes.Contains(one.Bytes(), []byte(pageStyle)) {
		t.Error("the page lacks its style sheet")
	}
	for _, bad := range []string{"<script>alert", "<script src", "<link rel=\"stylesheet", "@import", "url("} {
		if bytes.Contains(one.Bytes(), []byte(bad)) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if !bytes.Contains(one.Bytes(), []byte("Copyright (c) 2022 Leon Sorokin")) {
		t.Error("the page holds uPlot without its licence")
	}
}

func TestHTMLOfNothing(t *testing.T) {
	unfinished := &sim.Result{Policy: "none", Devices: 4, Jobs: small()[0].Jobs[4:]}
	for _, results := range [][]*sim.Result{nil, {{Policy: "empty"}}, {unfinished}} {
		var b bytes.Buffer
		if err := WriteHTML(&b, HTMLInput{Results: results}); err != nil {
			t.Errorf("%d results: %v", len(results), err)
		}
		if !bytes.Contains(b.Bytes(), []byte(`"jct":null`)) {
			t.Errorf("%d results: a distribution of no completion times", len(results))
		}
	}
}
