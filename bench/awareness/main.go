package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/study"
)

func main() {
	var o options
	flag.StringVar(&o.shared, "shared", os.Getenv("PACER_SHARED"), "`directory` with data/gavel/throughputs")
	flag.IntVar(&o.seeds, "seeds", 3, "workloads drawn for each load, at least 2")
	flag.StringVar(&o.figure, "figure", "", "draw awareness.svg into this `directory`")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "awareness:", err)
		os.Exit(1)
	}
}

type options struct {
	shared, figure string
	seeds          int
}

// loads are in requested devices per hour.
var loads = []float64{2, 4, 5.2}

// schedulers are pairs: one that knows speeds, then one that does not.
var schedulers = []study.Scheduler{
	{Name: "aware, as published", Policy: "gavel-las", Settings: map[string]string{"compat": "gavel"}},
	{Name: "agnostic, as published", Policy: "gavel-las:agnostic", Settings: map[string]string{"compat": "gavel"}},
	{Name: "aware, 30 s a start", Policy: "gavel-las", Settings: map[string]string{"start-cost": "30"}},
	{Name: "agnostic, 30 s a start", Policy: "gavel-las:agnostic", Settings: map[string]string{"start-cost": "30"}},
}

// workloads are jobs of one device, and of up to eight.
var workloads = []study.Workload{{Name: "jobs of one device"}, {Name: "jobs of 1, 2, 4 and 8 devices"}}

func run(ctx context.Context, w io.Writer, o options) error {
	if o.seeds < 2 {
		return fmt.Errorf("%d seeds give no interval, want at least 2", o.seeds)
	}
	measured, err := readTable(ctx, o.shared)
	if err != nil {
		return err
	}
	s := &study.Study{Name: "Knowing speeds, load in requested devices per hour", Workloads: workloads, Schedulers: schedulers,
		Loads: loads, Confidence: 0.95, Baseline: schedulers[0].Name}
	for seed := range o.seeds {
		s.Seeds = append(s.Seeds, uint64(seed))
	}
	outcomes, err := runAll(ctx, measured, s.Cells())
	if err != nil {
		return err
	}
	printTable(w, s, outcomes)
	if o.figure == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(o.figure, "awareness.svg"))
	if err != nil {
		return err
	}
	return errors.Join(s.WriteSVG(f, s.Rows(outcomes)), f.Close())
}

// runAll runs all cells, as many at a time as there are cores.
func runAll(ctx context.Context, measured *table, cells []study.Cell) ([]study.Outcome, error) {
	out := make([]study.Outcome, len(cells))
	next := make(chan int)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range next {
				began := time.Now()
				out[i] = measured.outcome(ctx, cells[i])
				fmt.Fprintf(os.Stderr, "awareness: run %d of %d in %.1f s\n", i+1, len(cells), time.Since(began).Seconds())
			}
		})
	}
	for i := range cells {
		next <- i
	}
	close(next)
	group.Wait()
	for _, o := range out {
		if o.Err != nil {
			return nil, o.Err
		}
	}
	return out, nil
}

// printTable prints the mean completion times of each pair, and their mean ratio over
// the seeds with its interval.
func printTable(w io.Writer, s *study.Study, outcomes []study.Outcome) {
	fmt.Fprintln(w, "| workload | load | semantics | aware | agnostic | ratio, 95 % interval |\n|---|---|---|---|---|---|")
	n := len(s.Seeds)
	for ; len(outcomes) > 0; outcomes = outcomes[2*n:] {
		var ratios []float64
		var mean [2]float64
		for seed := range n {
			aware, agnostic := float64(outcomes[seed].Record.Summary.AvgJCT), float64(outcomes[n+seed].Record.Summary.AvgJCT)
			ratios = append(ratios, agnostic/aware)
			mean[0] += aware / 3600 / float64(n)
			mean[1] += agnostic / 3600 / float64(n)
		}
		c := outcomes[0].Cell
		semantics := "Pacer's, 30 s a start"
		if s.Schedulers[c.Scheduler].Settings["compat"] != "" {
			semantics = "as published"
		}
		i := report.StudentT(ratios, s.Confidence)
		fmt.Fprintf(w, "| %s | %g | %s | %.2f h | %.2f h | %.2f, %.2f to %.2f |\n",
			s.Workloads[c.Workload].Name, c.Load, semantics, mean[0], mean[1], float64(i.Mean), float64(i.Lo), float64(i.Hi))
	}
}
