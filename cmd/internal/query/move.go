package query

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Migration describes a running job that may migrate to the best plan. The zero value is no
// job.
type Migration struct {
	From          string  `json:"from,omitempty" maxLength:"1024" example:"dp=16,mb=1,ga=8,zero=3" doc:"Plan that a running job has; the response says whether to migrate it."`
	To            string  `json:"to,omitempty" maxLength:"1024" doc:"With from, the plan to migrate to; the best one if absent."`
	Remaining     float64 `json:"remaining,omitempty" exclusiveMinimum:"0" maximum:"1e18" doc:"Samples left to train, with from."`
	RestartS      float64 `json:"restart_s,omitempty" minimum:"0" maximum:"1e9" doc:"Seconds of a restart without reading and writing the checkpoint; 30 if absent."`
	StorageGBytes float64 `json:"storage_gbytes,omitempty" minimum:"0" maximum:"1e9" doc:"Rate of checkpoint storage for the whole job, GByte/s; 2 per node if absent."`
	InPlace       bool    `json:"in_place,omitempty" doc:"Devices exchange their state over their links, without a checkpoint."`
}

// Check returns a *FieldError for a request that is wrong whatever the best plan
// turns out to be.
func (g *Migration) Check() error {
	if g.From == "" {
		return g.alone()
	}
	for _, f := range [...]struct{ name, plan string }{{"from", g.From}, {"to", g.To}} {
		plan, err := spec.ParsePlan(f.plan)
		if err == nil {
			err = plan.CheckBounds()
		}
		if f.plan != "" && err != nil {
			return &FieldError{Field: f.name, Value: f.plan, Err: err}
		}
	}
	if g.Remaining == 0 {
		return &FieldError{Field: "from", Value: g.From, Why: "needs {remaining}, how many samples are still to be trained"}
	}
	for _, f := range [...]struct {
		name        string
		value, most float64
	}{{"remaining", g.Remaining, 1e18}, {"restart_s", g.RestartS, 1e9}, {"storage_gbytes", g.StorageGBytes, 1e9}} {
		if !(f.value >= 0 && f.value <= f.most) {
			return &FieldError{Field: f.name, Value: f.value, Why: fmt.Sprintf("is not above 0 and at most %g", f.most)}
		}
	}
	return nil
}

// alone reports fields that need from, if it is absent.
func (g *Migration) alone() error {
	for _, f := range [...]struct {
		name  string
		value any
		given bool
	}{{"to", g.To, g.To != ""}, {"remaining", g.Remaining, g.Remaining != 0}, {"restart_s", g.RestartS, g.RestartS != 0},
		{"storage_gbytes", g.StorageGBytes, g.StorageGBytes != 0}, {"in_place", g.InPlace, g.InPlace}} {
		if f.given {
			return &FieldError{Field: f.name, Value: f.value, Why: "goes with {from}, the plan the job runs as"}
		}
	}
	return nil
}

// Move returns the migration of g, which passes Check, to c or to the plan of g; nil for the
// zero value.
func (g *Migration) Move(c spec.Config) (*planner.Move, error) {
	if g.From == "" {
		return nil, nil
	}
	from, err := spec.ParsePlan(g.From)
	if err != nil {
		return nil, &FieldError{Field: "from", Value: g.From, Err: err}
	}
	to := c
	if g.To != "" {
		plan, err := spec.ParsePlan(g.To)
		if err != nil {
			return nil, &FieldError{Field: "to", Value: g.To, Err: err}
		}
		to = At(c, plan)
	}
	bps := g.StorageGBytes * 1e9
	return &planner.Move{From: At(c, from), To: to, RemainingSamples: g.Remaining,
		Costs: planner.MoveCosts{RestartSec: g.RestartS, SaveBps: bps, LoadBps: bps, InPlace: g.InPlace}}, nil
}

// MoveRow is the answer to a Migration.
type MoveRow struct {
	From          string  `json:"from"`
	To            string  `json:"to"`
	Worth         bool    `json:"worth"`
	Probability   float64 `json:"probability" doc:"Probability that the move pays, by the intervals of both predictions."`
	CostS         float64 `json:"cost_s" doc:"Seconds without training."`
	StayS         float64 `json:"stay_s" doc:"Seconds to the end of the job without the move."`
	GoS           float64 `json:"go_s" doc:"Seconds to the end of the job with the move, its cost included."`
	StateGiB      float64 `json:"state_gib" doc:"A checkpoint."`
	MovedGiB      float64 `json:"moved_gib" doc:"Bytes of the checkpoint that devices must receive."`
	BreakEven     float64 `json:"break_even_samples,omitempty" doc:"Remaining samples from which the move pays; absent if it never pays."`
	RemainSamples float64 `json:"remaining_samples"`
}

// NewMoveRow writes the answer to m out.
func NewMoveRow(m *planner.Move, a planner.Migration) MoveRow {
	out := MoveRow{From: m.From.Plan.String(), To: m.To.Plan.String(), Worth: a.Worth, Probability: a.Probability,
		CostS: a.CostSec, StayS: a.StaySec, GoS: a.GoSec, StateGiB: a.StateBytes / memory.GiB, MovedGiB: a.MovedBytes / memory.GiB,
		RemainSamples: m.RemainingSamples}
	if a.BreakEvenSamples < 1e300 {
		out.BreakEven = a.BreakEvenSamples
	}
	return out
}
