package bench

import (
	"context"
	"testing"

	"github.com/pacer-ml/pacer/bench/scheduling"
	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/study"
)

// smallCells are six small workloads with one thing each that the usual one has not.
const smallCells = `
policies: [pacer, rubick, fifo-backfill]
defaults: {nodes: 4, jobs: 60, load: 1}
cells:
  - name: usual
  - {name: pareto, durations: pareto}
  - {name: bursts, arrivals: bursty}
  - {name: once, arrivals: once}
  - {name: large, sizes: large}
  - {name: costly, start_cost: 900}
`

// TestSchedulingBenchmark runs six small workloads under three policies, all of them deterministic. When the bars were set,
// rubick's average completion time was 0.99 of pacer's in the geometric mean, 0.96 to 1.09 in single cells, and the better of
// both 0.41 of fifo-backfill's. The bars leave a margin of that spread.
func TestSchedulingBenchmark(t *testing.T) {
	t.Parallel()
	set, err := scheduling.Read("small", []byte(smallCells))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := study.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := scheduling.Bench{Cells: set.Cells, Policies: set.Policies, Seeds: []uint64{2001}, Dir: dir, Workers: 1, Data: rubickData(t)}
	r, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := r.Rows()
	t.Logf("\n%s\n%s", scheduling.CellTable(rows, "pacer"), scheduling.PolicyTable(r.Totals()))
	if failed := scheduling.Failures(rows); len(failed) > 0 {
		t.Error(failed)
	}
	avg := map[string]report.Number{}
	for _, run := range r.Runs {
		avg[run.Policy] += run.Summary.AvgJCT / report.Number(len(set.Cells))
	}
	for _, p := range []string{"pacer", "rubick"} {
		if ratio := avg[p] / avg["fifo-backfill"]; !(ratio <= 0.6) {
			t.Errorf("%s has %.2f times the average of fifo-backfill, want at most 0.6", p, ratio)
		}
	}
	if ratio := avg["pacer"] / avg["rubick"]; !(ratio <= 1.15) {
		t.Errorf("pacer has %.3f times the average of rubick, want at most 1.15", ratio)
	}
}

// rubickData has Rubick's measurements, and its model fitted to at most 8 rows of each job type.
func rubickData(t *testing.T) experiment.Data {
	t.Helper()
	rows := importAll(t, "rubick")
	reg, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, _ := profiledRubick(t)
	for _, own := range perfmodel.GroupByKey(rows) {
		m, card, err := perfmodel.FitKey(t.Context(), f, own, perfmodel.FitOptions{MaxRows: 8})
		if err != nil {
			t.Fatal(err)
		}
		if err := reg.Put(card, m); err != nil {
			t.Fatal(err)
		}
	}
	return experiment.Data{
		Rows:   func(context.Context, store.Filter) ([]spec.Measurement, error) { return rows, nil },
		Fitted: func() (*registry.Registry, error) { return reg, nil },
	}
}
