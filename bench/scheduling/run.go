package scheduling

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/study"
)

// Confidence of all intervals.
const Confidence = 0.95

// Bench is what to run.
type Bench struct {
	Cells    []Cell
	Policies []policy.Spec
	Seeds    []uint64 // of drawn cells; recorded workloads run with the first
	Dir      *study.Dir
	Workers  int // runs at a time
	Data     experiment.Data
	// Shared is the directory that relative paths of recorded workloads begin at; "" = the
	// working directory.
	Shared string
	Warn   func(experiment.Warning)
	// Progress, if set, is called for every run, one call at a time.
	Progress func(Progress)
}

// Progress reports a run that is done.
type Progress struct {
	Cell, Policy string
	Seed         uint64
	Done, Total  int
	Kept         bool // the result was stored before
}

// Run is the result of a policy on a workload.
type Run struct {
	Cell   int
	Policy string
	Seed   uint64
	// Err says why the policy has no result: it cannot run the workload, or did not finish it.
	Err     string
	Summary report.Summary
}

// Result is the runs of a Bench.
type Result struct {
	Cells    []Cell // without those skipped
	Policies []string
	Seeds    []uint64
	Runs     []Run
	Skipped  []string // recorded workloads that are not there, with their cells
}

// Run runs every policy on every cell and seed. What a policy cannot do is in its Run. If ctx
// ends, Run returns the finished runs with the error.
func (b *Bench) Run(ctx context.Context) (*Result, error) {
	b.Data = shareData(b.Data)
	out := &Result{Seeds: b.Seeds}
	for _, p := range b.Policies {
		out.Policies = append(out.Policies, p.String())
	}
	var sweeps []*experiment.Sweep
	total := 0
	for i := range b.Cells {
		c := b.Cells[i]
		s, err := b.sweep(ctx, &c)
		if errors.Is(err, fs.ErrNotExist) && !c.Drawn() {
			out.Skipped = append(out.Skipped, err.Error())
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cell %s: %w", c.Name, err)
		}
		out.Cells, sweeps = append(out.Cells, c), append(sweeps, s)
		total += len(s.Cells())
	}
	if len(sweeps) == 0 {
		return nil, fmt.Errorf("no cell can run: %s", strings.Join(out.Skipped, "; "))
	}
	done := 0
	for i, s := range sweeps {
		r := study.Runner{Study: &s.Study, Dir: b.Dir, Workers: b.Workers, Setup: s.Setup, Progress: func(p study.Progress) {
			done++
			if b.Progress != nil {
				b.Progress(Progress{s.Name, out.Policies[p.Cell.Scheduler], p.Cell.Seed, done, total, p.Kept})
			}
		}}
		outcomes, err := r.Run(ctx)
		for _, o := range outcomes {
			if o.Err == nil && o.Record.Key == "" || errors.Is(o.Err, context.Canceled) {
				continue // not tried
			}
			out.Runs = append(out.Runs, newRun(i, out.Policies[o.Cell.Scheduler], &o))
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// newRun returns the run of an outcome.
func newRun(cell int, policy string, o *study.Outcome) Run {
	r := Run{Cell: cell, Policy: policy, Seed: o.Cell.Seed, Err: text(o.Err), Summary: o.Record.Summary}
	if s := &r.Summary; r.Err == "" && s.Finished < s.Jobs {
		r.Err = fmt.Sprintf("%d of %d jobs did not finish", s.Jobs-s.Finished, s.Jobs)
	}
	return r
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sweep returns the study of a cell.
func (b *Bench) sweep(ctx context.Context, c *Cell) (*experiment.Sweep, error) {
	jobs, err := c.Jobs()
	if err != nil {
		return nil, err
	}
	seeds := b.Seeds
	if !c.Drawn() {
		seeds = seeds[:1]
		if b.Shared != "" && !filepath.IsAbs(jobs) {
			jobs = filepath.Join(b.Shared, jobs)
		}
	}
	s := study.Study{Name: c.Name, Cluster: c.Cluster, Workloads: []study.Workload{{Name: c.Name, Jobs: jobs}},
		Seeds: seeds, Arrivals: study.Recorded, Confidence: Confidence, Baseline: b.Policies[0].String(), Settings: c.settings()}
	for _, p := range b.Policies {
		s.Schedulers = append(s.Schedulers, study.Scheduler{Name: p.String(), Policy: c.policy(p)})
	}
	return experiment.NewSweep(ctx, s, experiment.Options{Data: b.Data, Warn: b.Warn})
}

// policy returns a policy as it runs on c.
func (c *Cell) policy(p policy.Spec) string {
	if c.UnknownSteps {
		info, err := builtin.Policies.Lookup(p.Name)
		if err == nil && p.Options["steps"] == "" && info.CheckOption("steps") == nil {
			p.Options = maps.Clone(p.Options)
			p.Options["steps"] = "unknown"
		}
	}
	return p.String()
}

// shareData reads stored rows once for each filter, and opens the fitted models once.
func shareData(d experiment.Data) experiment.Data {
	type result struct {
		rows []spec.Measurement
		err  error
	}
	var mu sync.Mutex
	known := map[string]result{}
	out := experiment.Data{}
	if rows := d.Rows; rows != nil {
		out.Rows = func(ctx context.Context, f store.Filter) ([]spec.Measurement, error) {
			mu.Lock()
			defer mu.Unlock()
			key := fmt.Sprintf("%+v", f)
			r, ok := known[key]
			if !ok {
				r.rows, r.err = rows(ctx, f)
				known[key] = r
			}
			return r.rows, r.err
		}
	}
	if fitted := d.Fitted; fitted != nil {
		out.Fitted = sync.OnceValues(func() (*registry.Registry, error) { return fitted() })
	}
	return out
}
