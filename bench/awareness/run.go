package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
	"github.com/pacer-ml/pacer/scheduler/study"
)

// world is where all runs take place.
type world struct {
	cluster spec.Cluster
	rows    []spec.Measurement
	truth   *measured.Table
	oracle  scheduler.Oracle // what the truth says, and that nothing else can be had
}

func newWorld(ctx context.Context, shared string) (*world, error) {
	cluster, err := catalog.Cluster("v100=36,p100=36,k80=36")
	if err != nil {
		return nil, err
	}
	rows, err := datasets.ReadGavelTable(ctx, filepath.Join(shared, "data", "gavel", "throughputs", "simulation_throughputs.json"))
	if err != nil {
		return nil, err
	}
	t := measured.New(rows)
	return &world{cluster, rows, t, planner.New(t, planner.Options{Space: planner.NewMeasured(t.Configs())})}, nil
}

// score are the jobs the runs are about, generated how many are made.
var score = report.Score{First: "1000", Last: "1499"}

const generated = 6000

// meanDevices is how many a job of the wide workload asks for.
const meanDevices = 0.7*1 + 0.1*2 + 0.15*4 + 0.05*8

// outcome runs a cell.
func (w *world) outcome(ctx context.Context, c study.Cell) study.Outcome {
	out := study.Outcome{Cell: c}
	r, err := w.simulate(ctx, c)
	if err == nil {
		out.Record.Summary = report.Summarize(r, score)
		if s := out.Record.Summary; s.Finished < s.Jobs {
			err = fmt.Errorf("%d of %d jobs finish", s.Finished, s.Jobs)
		}
	}
	if err != nil {
		out.Err = fmt.Errorf("%s, %s at %g, seed %d: %w", workloads[c.Workload].Name, schedulers[c.Scheduler].Name, c.Load, c.Seed, err)
	}
	return out
}

func (w *world) simulate(ctx context.Context, c study.Cell) (*sim.Result, error) {
	o := datasets.GavelOptions{Seed: uint32(c.Seed), Jobs: generated, PerHour: c.Load}
	if c.Workload == 1 {
		o.Wide, o.PerHour = true, c.Load/meanDevices
	}
	jobs, err := datasets.GenerateGavel(w.rows, o)
	if err != nil {
		return nil, err
	}
	s := schedulers[c.Scheduler]
	conf := sim.Config{Cluster: w.cluster, Jobs: jobs, PolicyName: s.Policy, Score: score.Has, Truth: sim.Predicted{Predictor: w.truth, Cluster: w.cluster}}
	d := policy.Deps{Oracle: w.oracle}
	if name := s.Settings["compat"]; name != "" {
		m, err := compat.Parse(name)
		if err != nil {
			return nil, err
		}
		conf.Round, conf.Quirks, d.Quirks = m.Round, m.Quirks, m.Quirks
		if d.Placer, err = place.New(m.Placement, m.Quirks); err != nil {
			return nil, err
		}
	} else {
		conf.Costs = sim.PerStart(func(spec.Job) time.Duration { return startCost })
	}
	specs, err := policy.Parse(s.Policy)
	if err != nil {
		return nil, err
	}
	if conf.Policy, err = policy.New(specs[0], d); err != nil {
		return nil, err
	}
	return sim.Run(ctx, conf)
}

// startCost is what a start takes in Pacer's semantics; the published ones charge
// nothing.
const startCost = 30 * time.Second
