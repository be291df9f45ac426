package planner

import (
	"context"
	"errors"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// FitReport is whether a plan fits, its headroom, and changes that make it fit.
type FitReport struct {
	Choice
	// Memory is the plan's memory on the fullest device; zero where the model's
	// size is unknown, and then every plan fits.
	Memory memory.Breakdown
	// Budget is the bytes per device a plan may need, see memory.Budget; 0 = the
	// device's memory is unknown.
	Budget float64
	// Fixes are the changes that make the plan fit; empty where it fits.
	Fixes []Fix
	// Offloads is true where the request has no plan and only plans with offload
	// fit.
	Offloads bool

	limit float64 // usable bytes of a device
}

// Headroom returns the budget less the memory needed, bytes of one device: negative
// where the plan does not fit, 0 where the device's memory is unknown.
func (f *FitReport) Headroom() float64 {
	if f.Budget <= 0 {
		return 0
	}
	return f.Budget - f.Memory.Total()
}

// Probability returns the probability that the plan fits, in [0, 1]; 1 where the
// memory of the device or plan is unknown.
func (f *FitReport) Probability() float64 {
	if f.Budget <= 0 {
		return 1
	}
	return f.Memory.FitProbability(f.limit)
}

// Fix is a change after which the request fits.
type Fix struct {
	Change string // such as "recompute=full", "another plan", "32 devices"
	Choice Choice
}

// FitCheck returns whether the plan of r fits its devices. Without a plan it reports
// the fastest plan that fits, or else the plan that needs the least memory. Fixes
// are single changes of the plan, those that cost least time first, then the
// fastest other plan on the same devices. Without any of these the fix is the
// smallest larger number of devices found on which a plan fits. An illegal plan is
// an error that wraps ErrInfeasible.
func (pl *Planner) FitCheck(ctx context.Context, r Request) (FitReport, error) {
	out, err := pl.fitOf(ctx, r)
	switch {
	case err != nil:
		return FitReport{}, err
	case !out.Fits:
		out.Fixes, err = pl.fixes(ctx, r, out.Config.Plan)
	case r.Plan == nil && out.Config.Plan.Offload != spec.OffloadNone:
		out.Offloads, err = pl.mustOffload(ctx, r)
	}
	return out, err
}

// fitOf is FitCheck without fixes.
func (pl *Planner) fitOf(ctx context.Context, r Request) (FitReport, error) {
	r.Top = 1
	ranking, err := pl.Rank(ctx, r)
	if err != nil {
		return FitReport{}, err
	}
	out := FitReport{Choice: ranking.Choices[0]}
	out.limit = r.Accelerator.MemBytes * (1 - pl.o.Reserve)
	e, err := pl.Memory(out.Config)
	switch {
	case err == nil:
		out.Memory = e.Plan(out.Config.Plan)
		out.Budget = memory.Budget(out.limit, out.Memory.LogSD)
	case !errors.Is(err, perfmodel.ErrNotCovered):
		return FitReport{}, err
	}
	return out, nil
}

// mustOffload reports whether no plan without offload fits.
func (pl *Planner) mustOffload(ctx context.Context, r Request) (bool, error) {
	r, err := r.normal()
	if err != nil {
		return false, err
	}
	at := r.at(r.Devices, r.MinBatch)
	at.offload = noOffload
	return !pl.anyFits(ctx, at), ctx.Err()
}

// fixes returns the changes after which r fits; its plan p does not.
func (pl *Planner) fixes(ctx context.Context, r Request, p spec.Plan) ([]Fix, error) {
	var out []Fix
	if r.Plan != nil {
		for _, ch := range changes(p, r.Accelerator.IsCPU()) {
			at := r
			at.Plan = &ch.plan
			ranking, err := pl.Rank(ctx, at)
			switch {
			case errors.Is(err, ErrInfeasible): // no such plan is legal
			case err != nil:
				return nil, err
			case ranking.Choices[0].Fits:
				out = append(out, Fix{ch.name, ranking.Choices[0]})
			}
		}
		r.Devices = p.Devices()
		if r.Precision == "" {
			r.Precision = p.Precision
		}
		r.Plan = nil
		other, err := pl.Best(ctx, r)
		switch {
		case err == nil && slices.ContainsFunc(out, func(f Fix) bool { return f.Choice.Config.Plan == other.Config.Plan }):
			return out, nil // a single change is the best plan
		case err == nil:
			return append(out, Fix{"another plan", other}), nil
		case !errors.Is(err, ErrInfeasible) || len(out) > 0:
			return out, noFix(err)
		}
	}
	return pl.onMoreDevices(ctx, r)
}

// onMoreDevices returns the best plan on the smallest larger number of devices
// found on which a plan fits, nil if none.
func (pl *Planner) onMoreDevices(ctx context.Context, r Request) ([]Fix, error) {
	if r.Shape.Devices != "" {
		r.Devices, r.Shape = r.Shape.Total(), spec.Shape{}
	}
	r, err := r.normal()
	if err != nil {
		return nil, err
	}
	n := pl.moreDevices(ctx, r)
	if err := ctx.Err(); err != nil || n == 0 {
		return nil, err
	}
	best, err := pl.Best(ctx, r.at(n, r.MinBatch))
	return []Fix{{spec.Count(n, "device"), best}}, err
}

// noFix returns err, or nil for ErrInfeasible.
func noFix(err error) error {
	if errors.Is(err, ErrInfeasible) {
		return nil
	}
	return err
}
