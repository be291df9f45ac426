package study

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// compared is a study of two schedulers on two workloads with two seeds. Under las jobs
// take 1.2 and 0.8 times as long on the first workload and half as long on the second;
// makespans are equal. Of two guaranteed jobs, with the first seed one ends 61 s later
// and one does not finish; with the second, one ends 60 s later.
func compared() (*Study, []Outcome) {
	s := &Study{Name: "tested", Workloads: []Workload{{Name: "one"}, {Name: "two"}}, Seeds: []uint64{1, 2}, Confidence: 0.95, Baseline: "fifo",
		Schedulers: []Scheduler{{Name: "fifo"}, {Name: "las"}}}
	jct := [][]report.Number{{100, 100}, {120, 80}, {200, 400}, {100, 200}}
	var out []Outcome
	for i, c := range s.Cells() {
		k := Record{Summary: report.Summary{Jobs: 10, Finished: 10, Restarts: 3, AvgJCT: jct[i/2][i%2], P99JCT: 300, MaxJCT: 400, Makespan: 1000, DeviceHours: 7}}
		if c.Workload == 0 {
			k.Summary.Guaranteed = 2
			k.Ends = map[spec.JobID]report.Number{"a": 10, "b": 20}
			if c.Scheduler == 1 {
				k.Ends = []map[spec.JobID]report.Number{{"a": 71}, {"a": 70, "b": 5}}[i%2]
			}
		}
		k.Bounds = NoBounds()
		out = append(out, Outcome{Cell: c, Record: k})
	}
	return s, out
}

func TestMarkdown(t *testing.T) {
	s, outcomes := compared()
	got := s.Markdown(s.Rows(outcomes))
	want := strings.Join([]string{
		"| workload | policy | average JCT | of fifo | p99 | longest | makespan | of fifo | restarts per job | device-hours | guaranteed late |",
		"|---|---|---|---|---|---|---|---|---|---|---|",
		"| one | fifo | 100 ± 0 s | - | 300 ± 0 s | 400 ± 0 s | 1000 ± 0 s | - | 0.30 | 7 | 0.0 ± 0.0 |",
		"| one | las | 100 ± 254 s | 1.000 (-1.541 to 3.541) | 300 ± 0 s | 400 ± 0 s | 1000 ± 0 s | 1.000 (1.000 to 1.000) | 0.30 | 7 | 1.0 ± 12.7 |",
		"| two | fifo | 300 ± 1271 s | - | 300 ± 0 s | 400 ± 0 s | 1000 ± 0 s | - | 0.30 | 7 | - |",
		"| two | las | 150 ± 635 s | 0.500 (0.500 to 0.500) | 300 ± 0 s | 400 ± 0 s | 1000 ± 0 s | 1.000 (1.000 to 1.000) | 0.30 | 7 | - |",
		"| all | las |  | 0.707 (0.009 to 57.804) |  |  |  | 1.000 (1.000 to 1.000) |  |  |  |",
		"",
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Rows of failed runs, or without a baseline, have no figures.
func TestMarkdownOfFailures(t *testing.T) {
	s, outcomes := compared()
	for i := range outcomes {
		if c := outcomes[i].Cell; c.Scheduler == 0 && c.Seed == 1 {
			outcomes[i].Err = context.Canceled
		}
	}
	rows := s.Rows(outcomes)
	if r := rows[1]; r.OfBaseline.AvgJCT.Mean != 0.8 || r.OfBaseline.AvgJCT.Lo.Defined() || r.Late.Mean != 0 {
		t.Errorf("of the seed that is left %+v, %+v late", r.OfBaseline, r.Late)
	}
	if got := s.Markdown(rows); strings.Contains(got, "NaN") {
		t.Error(got)
	}
}

var (
	names    = regexp.MustCompile(`text-anchor="end"[^>]*>([^<]*)</text>`)
	dotsAt   = regexp.MustCompile(`<circle class="dot" cx="([0-9.]+)" cy="([0-9.]+)"`)
	interior = regexp.MustCompile(`<path class="line" d="M([0-9.]+) [0-9.]+H([0-9.]+)"/>`)
)

// Without loads the picture has a line for each compared scheduler, and all workloads
// below.
func TestIntervals(t *testing.T) {
	s, outcomes := compared()
	var b bytes.Buffer
	if err := s.WriteSVG(&b, s.Rows(outcomes)); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	if n := len(names.FindAllString(b.String(), -1)); n != 3 {
		t.Errorf("%d names, want las three times:\n%s", n, b.String())
	}
	var xs []float64
	for _, m := range dotsAt.FindAllStringSubmatch(b.String(), -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		xs = append(xs, x)
	}
	// One at 1, two at 0.5, all at 0.707, each with a makespan at 1.
	if len(xs) != 6 || !(xs[2] < xs[4] && xs[4] < xs[0]) || xs[1] != xs[3] || xs[3] != xs[5] || xs[1] <= xs[0] {
		t.Errorf("figures at %v", xs)
	}
	if n := len(interior.FindAllString(b.String(), -1)); n != 6 {
		t.Errorf("%d intervals, want 6", n)
	}

	// Without a baseline figures are in hours.
	s.Schedulers, s.Workloads = s.Schedulers[:1], s.Workloads[:1]
	b.Reset()
	if err := s.WriteSVG(&b, s.Rows(outcomes[:2])); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	if !strings.Contains(b.String(), "mean JCT, hours") || len(dotsAt.FindAllString(b.String(), -1)) != 2 {
		t.Errorf("want two figures in hours:\n%s", b.String())
	}
}
