package runner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// Replay returns the stored rows of exactly the given configuration. It is safe for concurrent use.
type Replay struct {
	rows   map[profiler.Identity]spec.Measurement
	order  []spec.Config
	timing SimulatedTiming
}

// NewReplay returns a Replay of rows, in any order. It ignores rows in doubt and rows that are known to have
// run another configuration than they record. It pools the step times of several OK rows of one configuration;
// other outcomes count only if there is no OK row. It keeps no reference to rows.
func NewReplay(rows []spec.Measurement, p SimulatedTiming) *Replay {
	r := &Replay{rows: map[profiler.Identity]spec.Measurement{}, timing: p}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b spec.Measurement) int {
		return cmp.Or(perfmodel.CompareConfigs(a.Config, b.Config), a.At.Compare(b.At),
			cmp.Compare(a.Source, b.Source), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Outcome, b.Outcome))
	})
	for _, m := range sorted {
		if m.DoubtReason() != "" || m.Outcome == spec.OK && !(m.MedianStepSec() > 0) {
			continue
		}
		id := profiler.IdentityOf(m.Config)
		old, ok := r.rows[id]
		switch {
		case !ok:
			r.order = append(r.order, m.Config)
			r.rows[id] = m
		case old.Outcome != spec.OK && m.Outcome == spec.OK:
			r.rows[id] = m
		case old.Outcome == spec.OK && m.Outcome == spec.OK:
			old.StepSec = slices.Concat(old.StepSec, m.StepSec)
			slices.Sort(old.StepSec)
			old.PeakBytes = max(old.PeakBytes, m.PeakBytes)
			r.rows[id] = old
		}
	}
	return r
}

// Configs implements profiler.Tabled: all configurations of the table, with any outcome, in canonical order.
func (r *Replay) Configs() []spec.Config { return slices.Clone(r.order) }

// Run implements profiler.Runner. A configuration without a row has the outcome Failed.
func (r *Replay) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	if err := r.timing.wait(ctx); err != nil {
		return spec.Measurement{}, err
	}
	row, ok := r.rows[profiler.IdentityOf(c)]
	if !ok {
		return spec.Measurement{Config: c, Outcome: spec.Failed,
			Reason: fmt.Sprintf("not measured: no row of %s, plan %s on %s", c.Key(), c.Plan, c.Shape)}, nil
	}
	m := spec.Measurement{
		Config: c, Outcome: row.Outcome, Reason: row.Reason, PeakBytes: row.PeakBytes,
		PhaseSec: maps.Clone(row.PhaseSec), Env: map[string]string{},
	}
	for _, k := range []string{profiler.EnvWall, profiler.EnvLog, profiler.EnvNoise, profiler.EnvReserved, profiler.EnvEnergy} {
		if v, ok := row.Env[k]; ok {
			m.Env[k] = v
		}
	}
	if m.Outcome != spec.OK {
		r.timing.setWallTime(&m)
		return m, nil
	}
	if r.timing.Noise == 0 && len(row.StepSec) > 1 {
		m.StepSec = slices.Clone(row.StepSec)
	} else {
		m.StepSec = r.timing.steps(c, row.MedianStepSec())
	}
	r.timing.setWallTime(&m)
	return m, nil
}
