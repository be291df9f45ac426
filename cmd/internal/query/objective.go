package query

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Goal is the objective of a search with its figures, named as in
// docs/reference/contract.md. The zero value wants the fastest plan on exactly the devices
// of the request.
type Goal struct {
	Objective         string  `json:"objective,omitempty" enum:"throughput,cost,min-devices,goodput" doc:"Criterion of the best plan; throughput if absent. With cost and min-devices, devices is the largest number."`
	TargetSamplesPerS float64 `json:"target_samples_per_s,omitempty" exclusiveMinimum:"0" maximum:"1e15" doc:"Throughput to reach with objective min-devices."`
	Target            float64 `json:"target,omitempty" exclusiveMinimum:"0" maximum:"1e15" doc:"The same as target_samples_per_s."`
	MinDevices        int     `json:"min_devices,omitempty" minimum:"1" maximum:"1048576" doc:"Smallest number of devices; devices is then the largest."`
	PricePerHour      float64 `json:"price_per_hour,omitempty" exclusiveMinimum:"0" maximum:"1e9" doc:"Price of one device; costs are in device-hours if absent."`
	BatchRange
}

// BatchRange says which global batches a plan may take, how their goodput is computed,
// and by which quantile of the speed plans are compared. The zero value takes the
// batch of the request and the median.
type BatchRange struct {
	MinBatch     int     `json:"min_batch,omitempty" minimum:"1" maximum:"16777216" doc:"Smallest global batch, in place of global_batch."`
	MaxBatch     int     `json:"max_batch,omitempty" minimum:"1" maximum:"16777216" doc:"Largest global batch, in place of global_batch."`
	NoiseScale   float64 `json:"noise_scale,omitempty" exclusiveMinimum:"0" maximum:"1e15" doc:"Gradient noise scale in samples, for goodput."`
	InitialBatch int     `json:"initial_batch,omitempty" minimum:"1" maximum:"16777216" doc:"Batch with a statistical efficiency of 1; min_batch if absent."`
	Risk         float64 `json:"risk,omitempty" exclusiveMinimum:"0" maximum:"0.5" doc:"Quantile of throughput to compare plans by, in (0, 0.5]; the median if absent."`
}

// Set writes g into r, which has everything else. Errors are *FieldError.
func (g *Goal) Set(r *planner.Request) error {
	for _, err := range []error{g.checkObjective(), g.checkFigures(), g.checkBatch(r.GlobalBatch)} {
		if err != nil {
			return err
		}
	}
	if g.MinDevices != 0 {
		if err := InRange("min_devices", g.MinDevices, r.Devices); err != nil {
			return err
		}
	}
	r.Objective, r.TargetThroughput, r.MinDevices = planner.Objective(g.Objective), cmp.Or(g.TargetSamplesPerS, g.Target), g.MinDevices
	r.PricePerHour, r.MinBatch, r.MaxBatch = g.PricePerHour, g.MinBatch, g.MaxBatch
	r.NoiseScale, r.InitialBatch, r.Risk = g.NoiseScale, g.InitialBatch, g.Risk
	return nil
}

// checkObjective reports an unknown objective, an objective without its figure, and figures of
// other objectives.
func (g *Goal) checkObjective() error {
	is := cmp.Or(planner.Objective(g.Objective), planner.Throughput)
	if !slices.Contains(planner.Objectives(), is) {
		return &FieldError{Field: "objective", Value: g.Objective, Why: fmt.Sprintf("is not one of %v", planner.Objectives())}
	}
	for _, f := range [...]struct {
		name  string
		value any
		given bool
		with  planner.Objective
	}{
		{"target", g.Target, g.Target != 0, planner.MinDevices},
		{"target_samples_per_s", g.TargetSamplesPerS, g.TargetSamplesPerS != 0, planner.MinDevices},
		{"noise_scale", g.NoiseScale, g.NoiseScale != 0, planner.Goodput},
		{"initial_batch", g.InitialBatch, g.InitialBatch != 0, planner.Goodput},
	} {
		if f.given && is != f.with {
			return &FieldError{Field: f.name, Value: f.value, Why: fmt.Sprintf("goes with {objective} %s, and this one is %s: change it, or leave {%s} out", f.with, is, f.name)}
		}
	}
	switch {
	case is == planner.MinDevices && g.Target == 0 && g.TargetSamplesPerS == 0:
		return &FieldError{Field: "objective", Value: is, Why: "needs {target}, how many samples/s to reach"}
	case is == planner.Goodput && g.NoiseScale == 0:
		return &FieldError{Field: "objective", Value: is, Why: "needs {noise_scale}, the gradient noise scale in samples"}
	}
	return nil
}

// maxFigure bounds targets, prices and noise scales.
const maxFigure = 1e15

// checkFigures reports a figure out of range, and a target given twice.
func (g *Goal) checkFigures() error {
	for _, f := range [...]struct {
		name  string
		value float64
	}{{"target", g.Target}, {"target_samples_per_s", g.TargetSamplesPerS}, {"price_per_hour", g.PricePerHour}, {"noise_scale", g.NoiseScale}} {
		if f.value != 0 && !(f.value > 0 && f.value <= maxFigure) {
			return &FieldError{Field: f.name, Value: f.value, Why: fmt.Sprintf("is not above 0 and at most %g", maxFigure)}
		}
	}
	if g.Risk != 0 && !(g.Risk > 0 && g.Risk <= 0.5) {
		return &FieldError{Field: "risk", Value: g.Risk, Why: "is not in (0, 0.5]"}
	}
	if g.Target > 0 && g.TargetSamplesPerS > 0 && g.Target != g.TargetSamplesPerS {
		return &FieldError{Field: "target", Value: g.Target, Why: fmt.Sprintf("and {target_samples_per_s} %g are the same thing: give one of them", g.TargetSamplesPerS)}
	}
	return nil
}

// checkBatch reports a global batch that is both given, if it is not 0, and free, or that is
// free without bounds.
func (g *Goal) checkBatch(given int) error {
	if g.InitialBatch != 0 {
		if err := InRange("initial_batch", g.InitialBatch, MaxBatch); err != nil {
			return err
		}
	}
	switch {
	case g.MinBatch == 0 && g.MaxBatch == 0:
		return nil
	case given > 0:
		return &FieldError{Field: "global_batch", Value: given, Why: ", but {min_batch} or {max_batch} leave it free"}
	case g.MinBatch < 1 || g.MaxBatch < 1 || g.MaxBatch > MaxBatch:
		return &FieldError{Field: "max_batch", Value: g.MaxBatch, Why: "and {min_batch} must bound the global batch from both sides"}
	case g.MaxBatch < g.MinBatch:
		return &FieldError{Field: "max_batch", Value: g.MaxBatch, Why: fmt.Sprintf("is below {min_batch} %d", g.MinBatch)}
	}
	return nil
}

// ProbeRow is a measurement worth taking.
type ProbeRow struct {
	PlanRow
	Gain float64 `json:"gain" doc:"Expected speedup of the chosen plan after this measurement and those before it, as a share."`
}

// ProbeRows writes probes out.
func ProbeRows(probes []planner.Probe) []ProbeRow {
	out := make([]ProbeRow, len(probes))
	for i, p := range probes {
		out[i] = ProbeRow{PlanRow: NewPlanRow(p.Choice), Gain: p.Gain}
	}
	return out
}

// At returns c with another plan, on as many devices as it names: packed on nodes
// like those of c where that is another number. Its precision is that of c unless
// it names one.
func At(c spec.Config, plan spec.Plan) spec.Config {
	p := plan.Normal()
	if p.Precision == "" {
		p.Precision = c.Plan.Precision
	}
	if p.Devices() != c.Plan.Devices() {
		c.Shape = spec.Packed(p.Devices(), max(c.Shape.Most(), 1))
	}
	c.Plan = p
	return c
}
