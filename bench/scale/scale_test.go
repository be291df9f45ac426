package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// The queue holds one job for 10 s and two for 5 s of the 20 s between the first
// arrival and the last; what waits after that does not count.
func TestMeanQueue(t *testing.T) {
	const s = time.Second
	r := &sim.Result{
		Jobs:  []sim.JobRecord{{Job: spec.Job{Submit: 5 * s}}, {Job: spec.Job{Submit: 25 * s}}},
		Usage: []sim.Usage{{At: 5 * s}, {At: 10 * s, Waiting: 1}, {At: 20 * s, Waiting: 2}, {At: 40 * s}},
	}
	if got := meanQueue(r); got != 1 {
		t.Errorf("mean queue %g, want (10 x 1 + 5 x 2) / 20", got)
	}
	if got := meanQueue(&sim.Result{}); got != 0 {
		t.Errorf("mean queue of nothing %g", got)
	}
}

// The workload asks for the load: what its jobs ask for per second over the slow
// devices and twice the fast ones.
func TestWorkloadHasLoad(t *testing.T) {
	s := scale{nodes: 20, perNode: 8, jobs: 50_000, load: 0.95, seed: 1}
	jobs, err := s.workload()
	if err != nil {
		t.Fatal(err)
	}
	work := 0.0
	for _, j := range jobs {
		work += float64(j.Devices) * j.Duration.Seconds()
	}
	load := work / jobs[len(jobs)-1].Submit.Seconds() / (80 + 2*80)
	if load < 0.93 || load > 0.97 { // about four standard errors
		t.Errorf("load %g", load)
	}
}

func TestParseContenders(t *testing.T) {
	c, err := parseContenders("las:round=300:quantum=60,srtf")
	if err != nil || len(c) != 2 || c[0].round != "300" || c[0].spec.String() != "las:quantum=60" || c[1].String() != "srtf" {
		t.Errorf("%v, %v", c, err)
	}
	for _, bad := range []string{"las:round=0", "las:round=x", "nobody", ""} {
		if c, err := parseContenders(bad); err == nil {
			t.Errorf("%q is %v", bad, c)
		}
	}
}

// Every policy finishes all jobs on every size of cluster, and the picture has a
// curve for each.
func TestFigure(t *testing.T) {
	all := sizes
	sizes = []int{2, 5}
	defer func() { sizes = all }()
	dir := t.TempDir()
	var out bytes.Buffer
	o := options{scale: scale{nodes: 2, perNode: 8, jobs: 200, load: 0.9, seed: 1}, policies: "fifo-backfill,srtf,las:round=300", figure: dir}
	if err := run(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "  200  "); n != 6 {
		t.Errorf("%d of 6 runs finished all jobs:\n%s", n, out.String())
	}
	svg, err := os.ReadFile(filepath.Join(dir, "scale.svg"))
	if err != nil || strings.Count(string(svg), `class="line"`) != 3 || !strings.Contains(string(svg), "las in 300 s rounds") || strings.Contains(string(svg), "NaN") {
		t.Errorf("%v:\n%s", err, svg)
	}
	o.nodes = 1
	if err := run(t.Context(), &out, o); err == nil {
		t.Error("a cluster of one node has two types")
	}
}
