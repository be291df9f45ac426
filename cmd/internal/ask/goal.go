package ask

import (
	"cmp"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Goal is what a plan is chosen for, in the words of docs/cli-contract.md. The
// zero value asks for the fastest plan on exactly the devices named.
type Goal struct {
	Objective         string  `json:"objective,omitempty" enum:"throughput,cost,min-devices,goodput" doc:"What is best; throughput if absent. cost and min-devices take the devices for the most there are."`
	TargetSamplesPerS float64 `json:"target_samples_per_s,omitempty" exclusiveMinimum:"0" maximum:"1e15" doc:"For min-devices; --target of the command line."`
	Target            float64 `json:"target,omitempty" exclusiveMinimum:"0" maximum:"1e15" doc:"The same as target_samples_per_s."`
	MinDevices        int     `json:"min_devices,omitempty" minimum:"1" maximum:"1048576" doc:"Makes the devices a range."`
	PricePerHour      float64 `json:"price_per_hour,omitempty" exclusiveMinimum:"0" maximum:"1e9" doc:"Of one device; costs are in device-hours if absent."`
	Teaching
}

// Teaching is how samples teach: which batches may be taken, and how certain the
// speed has to be. The zero value is the batch of the question, by the median.
type Teaching struct {
	MinBatch     int     `json:"min_batch,omitempty" minimum:"1" maximum:"16777216" doc:"Least global batch, where it is free."`
	MaxBatch     int     `json:"max_batch,omitempty" minimum:"1" maximum:"16777216" doc:"Largest global batch, where it is free."`
	NoiseScale   float64 `json:"noise_scale,omitempty" exclusiveMinimum:"0" maximum:"1e15" doc:"Gradient noise scale in samples, for goodput."`
	InitialBatch int     `json:"initial_batch,omitempty" minimum:"1" maximum:"16777216" doc:"Batch at which a sample teaches 1; min_batch if absent."`
	Risk         float64 `json:"risk,omitempty" exclusiveMinimum:"0" maximum:"0.5" doc:"Compare plans by the speed they fall short of with this probability, not by the median."`
}

// Set writes g into r, which has everything else. The planner checks it.
func (g *Goal) Set(r *planner.Request) error {
	if g.MaxBatch > 0 || g.MinBatch > 0 {
		if r.GlobalBatch > 0 {
			return &FieldError{Field: "global_batch", Value: r.GlobalBatch, Why: ", but min_batch or max_batch leave it free"}
		}
		if g.MinBatch < 1 || g.MaxBatch < g.MinBatch || g.MaxBatch > MaxBatch {
			return &FieldError{Field: "max_batch", Value: g.MaxBatch, Why: "and min_batch must bound the global batch from both sides"}
		}
	}
	if g.Target > 0 && g.TargetSamplesPerS > 0 && g.Target != g.TargetSamplesPerS {
		return &FieldError{Field: "target", Value: g.Target, Why: fmt.Sprintf("and target_samples_per_s %g are the same thing: give one of them", g.TargetSamplesPerS)}
	}
	r.Objective, r.TargetThroughput, r.MinDevices = planner.Objective(g.Objective), cmp.Or(g.TargetSamplesPerS, g.Target), g.MinDevices
	r.PricePerHour, r.MinBatch, r.MaxBatch = g.PricePerHour, g.MinBatch, g.MaxBatch
	r.NoiseScale, r.InitialBatch, r.Risk = g.NoiseScale, g.InitialBatch, g.Risk
	return nil
}

// ProbeRow is a measurement worth taking.
type ProbeRow struct {
	PlanRow
	Gain float64 `json:"gain" doc:"By what share the plan decided on is expected to be faster once this one, and those before it, have been measured."`
}

// ProbeRows writes probes out.
func ProbeRows(probes []planner.Probe) []ProbeRow {
	out := make([]ProbeRow, len(probes))
	for i, p := range probes {
		out[i] = ProbeRow{PlanRow: NewPlanRow(p.Choice), Gain: p.Gain}
	}
	return out
}

const gib = 1 << 30

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
