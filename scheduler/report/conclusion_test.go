package report

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func TestConclusion(t *testing.T) {
	run := func(policy string, jct ...int) *sim.Result {
		r := &sim.Result{Policy: policy}
		for i, s := range jct {
			r.Jobs = append(r.Jobs, sim.JobRecord{Job: spec.Job{ID: spec.JobID(rune('a' + i))}, End: time.Duration(s) * time.Second, Finished: s > 0})
		}
		return r
	}
	for _, c := range []struct {
		runs []*sim.Result
		want string
	}{
		{[]*sim.Result{run("fifo", 60, 60)}, ""},
		{[]*sim.Result{run("fifo", 0), run("las", 0)}, ""},
		{[]*sim.Result{run("fifo", 120, 60), run("las", 60, 30)},
			"las has the lowest mean job completion time, 45.0 s. It is 0.500 times that of the baseline fifo (95 % interval 0.500 to 0.500, over the jobs of this run)."},
		{[]*sim.Result{run("fifo", 30), run("srtf", 90), run("las", 60)},
			"fifo has the lowest mean job completion time, 30.0 s. The next, that of las, is 2.000 times that of the baseline fifo."},
		{[]*sim.Result{run("fifo", 60, 60), run("las", 30, 0)},
			"Not all jobs finish under every policy, so mean completion times do not compare. The table has the number of finished jobs."},
	} {
		if got := conclusion(c.runs, SummarizeAll(c.runs, Score{}), Score{}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
