package accuracy

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// planSources returns the published tables with plans that experts chose for the machines they ran on, those with the fewest
// rows first: all of their rows record the whole plan, and some split models over tensor and pipeline parallel ranks. A
// planner that calls one illegal or too large would never find it. None has peak memory, so no estimate was fitted to them.
func (p *tables) planSources() []string {
	remembered := map[string]bool{}
	for i := range p.all {
		if p.all[i].PeakBytes > 0 {
			remembered[sourceOf(&p.all[i])] = true
		}
	}
	var out []string
	for _, source := range p.sources {
		rows := p.usable[source]
		partial := slices.ContainsFunc(rows, func(m spec.Measurement) bool { return !wholePlan(&m) })
		split := slices.ContainsFunc(rows, func(m spec.Measurement) bool { return m.Config.Plan.TP > 1 && m.Config.Plan.PP > 1 })
		if split && !partial && !remembered[source] {
			out = append(out, source)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(p.usable[a]), len(p.usable[b])) })
	return out
}

// wholePlan reports whether a published row has the degrees and batches of its plan, and how the training state is sharded.
// The latter may be known of the documents of its source.
func wholePlan(m *spec.Measurement) bool {
	plan := &m.Config.Plan
	sharded := recorded(m, "zero_stage") || plan.ZeRO > 0 || plan.DP*plan.CP == 1
	return sharded && !slices.ContainsFunc([]string{"dp", "tp", "pp", "micro_batch", "global_batch"}, func(column string) bool { return !recorded(m, column) })
}

// PlanCheck is the planner's verdict on a plan that is known to have run.
type PlanCheck struct {
	Row         string `json:"row"`
	Source      string `json:"source"`
	Model       string `json:"model"`
	Accelerator string `json:"accelerator"`
	Placement   string `json:"placement"` // devices on each node
	Framework   string `json:"framework,omitempty"`
	Plan        string `json:"plan"` // as read; values that are not recorded have their defaults

	// Contradiction is the reason that the row probably ran another plan than it
	// records, "" if there is none. Such a plan is not scored.
	Contradiction string `json:"contradiction,omitempty"`
	// Illegal is the rule of spec.Plan.Check or the planner that the plan breaks,
	// "" if it is legal.
	Illegal string `json:"illegal,omitempty"`
	Fits    bool   `json:"fits"`
	// Recompute is the mode that the memory was estimated for: the recorded one, else the first of none, selective and
	// full, from the one as read on, with which the plan fits, else full.
	Recompute   spec.Recompute `json:"recompute"`
	MemoryBytes float64        `json:"memory_bytes"` // estimated peak of a device; 0 if the model's size is unknown
	DeviceBytes float64        `json:"device_bytes"`
	Why         string         `json:"why,omitempty"` // the reason that it does not fit, or has no prediction

	// MeasuredSec and PredictedSec are step times, the latter of the plan as it is
	// read, as in protocol published-0; PredictedFitSec is that of the plan with
	// Recompute. 0 = not predicted.
	MeasuredSec     float64 `json:"measured_s"`
	PredictedSec    float64 `json:"predicted_s"`
	PredictedFitSec float64 `json:"predicted_fit_s"`
}

// OK reports whether the plan is legal and predicted to fit.
func (p *PlanCheck) OK() bool { return p.Illegal == "" && p.Fits }

// Reason returns the reason that the plan is not OK, "" if it is.
func (p *PlanCheck) Reason() string {
	switch {
	case p.OK():
		return ""
	case p.Illegal != "":
		return p.Illegal
	}
	return p.Why
}

// Ratio returns the predicted over the measured step time of the plan as it is
// read, 0 without a prediction.
func (p *PlanCheck) Ratio() float64 { return p.PredictedSec / p.MeasuredSec }

// RatioFit is Ratio for the plan with the recomputation with which it fits.
func (p *PlanCheck) RatioFit() float64 { return p.PredictedFitSec / p.MeasuredSec }

// checkPlans checks every plan of a source for a model with a shape in the catalog,
// with a planner that was not fitted to that source. absent lists the models of the
// other rows.
func (b *Bench) checkPlans(ctx context.Context, c Contender, source string) (checks []PlanCheck, absent []string, err error) {
	p, err := b.published()
	if err != nil {
		return nil, nil, err
	}
	blind, err := b.informed(ctx, c, source, nil)
	if err != nil {
		return nil, nil, err
	}
	pl := planner.New(blind, planner.Options{})
	for i := range p.usable[source] {
		m := &p.usable[source][i]
		if !inCatalog(&m.Config.Model) {
			if name := m.Config.Model.Name; !slices.Contains(absent, name) {
				absent = append(absent, name)
			}
			continue
		}
		check, err := checkPlan(ctx, pl, m)
		if err != nil {
			return nil, nil, err
		}
		checks = append(checks, check)
	}
	return checks, absent, nil
}

// inCatalog reports whether m's shape is that of a model of the catalog, perhaps with adapters.
func inCatalog(m *spec.Model) bool {
	name, _, _ := strings.Cut(m.Name, " (")
	known, err := catalog.Model(name)
	return err == nil && known.HasShape() && known.Layers == m.Layers && known.Hidden == m.Hidden
}

// checkPlan checks one plan with pl.
func checkPlan(ctx context.Context, pl *planner.Planner, m *spec.Measurement) (PlanCheck, error) {
	c := m.Config
	out := PlanCheck{
		Row: m.Origin, Source: sourceOf(m), Model: c.Model.Name, Accelerator: c.Accelerator.Name, Placement: c.Shape.String(),
		Framework: c.Framework, Plan: c.Plan.String(), DeviceBytes: c.Accelerator.MemBytes, MeasuredSec: m.MedianStepSec(),
		Contradiction: m.Env[spec.EnvWrongConfig], Illegal: illegal(&c),
	}
	if out.Illegal != "" { // the planner would refuse it for the same reason
		out.Recompute = c.Plan.Recompute
		return out, nil
	}
	for _, mode := range recomputesOf(m) {
		c.Plan.Recompute = mode
		choice, err := rankPlan(ctx, pl, &c)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out.Recompute = mode
		if err != nil {
			out.Why = err.Error()
			return out, nil
		}
		sec, _, _ := choice.Prediction.StepSec(c.Plan.GlobalBatch())
		if mode == m.Config.Plan.Recompute {
			out.PredictedSec = sec
		}
		out.PredictedFitSec, out.MemoryBytes = sec, choice.Prediction.MemoryBytes
		if out.Fits, out.Why = choice.Fits, choice.Why; out.Fits {
			break
		}
	}
	return out, nil
}

// recomputesOf returns the modes a plan may have run with, least first: the one
// recorded, or all.
func recomputesOf(m *spec.Measurement) []spec.Recompute {
	if recorded(m, "recompute") {
		return []spec.Recompute{m.Config.Plan.Recompute}
	}
	modes := []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull}
	return modes[max(slices.Index(modes, m.Config.Plan.Recompute), 0):]
}

// recorded reports whether a published row has a value in an optional plan column.
func recorded(m *spec.Measurement, column string) bool {
	return !slices.Contains(strings.Split(m.Env["unrecorded"], ","), column)
}

// illegal returns the first rule c breaks: of its plan for its model and
// devices, or of the planner about plans given by name.
func illegal(c *spec.Config) string {
	if err := c.Check(); err != nil {
		return err.Error()
	}
	if why := planner.CannotSplit(&c.Model, c.Seq(), &c.Plan); why != "" {
		return why
	}
	return planner.CannotOffload(&c.Plan)
}

// rankPlan returns the choice of pl for exactly the plan of c.
func rankPlan(ctx context.Context, pl *planner.Planner, c *spec.Config) (planner.Choice, error) {
	r, err := pl.Rank(ctx, planner.Request{
		Model: c.Model, SeqLen: c.SeqLen, Accelerator: c.Accelerator, Link: c.Link, Framework: c.Framework,
		Shape: c.Shape, GlobalBatch: c.Plan.GlobalBatch(), Plan: &c.Plan, Top: 1,
	})
	if err != nil {
		return planner.Choice{}, err
	}
	return r.Choices[0], nil
}
