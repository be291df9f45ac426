package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
	"github.com/pacer-ml/pacer/scheduler/study"
)

// table has the measured throughputs that all runs share.
type table struct{ rows []spec.Measurement }

func readTable(ctx context.Context, shared string) (*table, error) {
	rows, err := datasets.ReadGavelTable(ctx, filepath.Join(shared, "data", "gavel", "throughputs", "simulation_throughputs.json"))
	return &table{rows}, err
}

// Numbers of the scored jobs, and the number of generated ones.
const (
	scored    = "1000-1499"
	generated = 6000
)

// meanDevices is the mean number of devices of the wide workload's jobs.
const meanDevices = 0.7*1 + 0.1*2 + 0.15*4 + 0.05*8

// outcome runs a cell.
func (t *table) outcome(ctx context.Context, c study.Cell) study.Outcome {
	out := study.Outcome{Cell: c}
	r, score, err := t.simulate(ctx, c)
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

func (t *table) simulate(ctx context.Context, c study.Cell) (*sim.Result, report.Score, error) {
	g := trace.GavelOptions{Seed: uint32(c.Seed), Jobs: generated, PerHour: c.Load}
	if c.Workload == 1 {
		g.Wide, g.PerHour = true, c.Load/meanDevices
	}
	jobs, err := trace.GenerateGavel(t.rows, g)
	if err != nil {
		return nil, report.Score{}, err
	}
	s := schedulers[c.Scheduler]
	o := experiment.Options{Cluster: "v100=36,p100=36,k80=36", Policy: s.Policy, Score: scored,
		Given: experiment.Given{Jobs: jobs, Truth: experiment.Listed("gavel", t.rows)}}
	for name, value := range s.Settings {
		if err := o.Set(name, value); err != nil {
			return nil, report.Score{}, err
		}
	}
	x, err := experiment.New(ctx, o)
	if err != nil {
		return nil, report.Score{}, err
	}
	results, err := x.Run(ctx, experiment.Hooks{})
	if err != nil {
		return nil, x.Score, err
	}
	return results[0], x.Score, nil
}
