package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/nextplans"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/trust"
	"github.com/pacer-ml/pacer/cmd/server/nearest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// NearestRequest asks which measurements are nearest to a plan.
type NearestRequest struct {
	query.Request
	query.FixedPlan
	answer.Described
	Top int `json:"top,omitempty" minimum:"1" maximum:"100" doc:"Number of measurements; 10 if absent."`
}

// Nearest has the measurements nearest to a plan.
type Nearest struct {
	Rows     []nearest.NearRow `json:"rows" doc:"Nearest first."`
	Compared int               `json:"compared" doc:"Number of measurements compared: all stored ones with a step time or out of memory."`
}

// Sources is the JSON of pacer store list.
type Sources struct {
	Groups []trust.Group `json:"groups"`
}

// registerNearest adds the operations that say what predictions rest on.
func (s *Server) registerNearest(api huma.API, m *router) {
	register(s, api, m, operation{http.MethodPost, "/v1/nearest", "nearest", "questions", search, "The measurements nearest to a plan",
		"Stored measurements by their distance to a plan, with their sources and with what the performance model predicts for them.", []int{404, 422}},
		ofBody(s.nearest))
	register(s, api, m, operation{http.MethodPost, "/v1/calibrate-next", "calibrate-next", "questions", search, "Which plans to measure next",
		"The plans that narrow the intervals of a model most, as pacer calibrate --emit chooses them, beside the measurements that are stored.", []int{404, 422}},
		ofBody(func(ctx context.Context, in *nextplans.CalibrateNextRequest) (nextplans.CalibrateNext, error) {
			return nextplans.Choose(ctx, s.models, s.resolver, in)
		}))
	register(s, api, m, operation{http.MethodGet, "/v1/sources", "sources", "listings", search, "Measurements by source and whether they are used",
		"As pacer store list: how many rows of each source are used, in doubt, quarantined or forgotten, and why.", nil},
		func(ctx context.Context, _ *struct{}) (Sources, error) {
			rows, err := s.db.Records(ctx, store.Filter{})
			return Sources{trust.Groups(rows)}, err
		})
}

func (s *Server) nearest(ctx context.Context, in *NearestRequest) (Nearest, error) {
	in.Into(&in.Request)
	r, a, err := s.models.Resolve(ctx, &in.Request)
	if err == nil {
		err = r.Fix(&in.Request, in.FixedPlan)
	}
	if err != nil {
		return Nearest{}, err
	}
	choice, err := a.Planner.Fixed(ctx, r.Request)
	if err != nil {
		return Nearest{}, err
	}
	found, compared, err := nearest.Find(s.db.Query(ctx, store.Filter{}), &choice.Config, cmp.Or(in.Top, 10))
	out := Nearest{Rows: []nearest.NearRow{}, Compared: compared}
	for i := range found {
		out.Rows = append(out.Rows, s.nearRow(ctx, &choice.Config, &found[i], in.Family))
	}
	return out, err
}

// nearRow describes a measurement, with its prediction by the performance model of its own model and accelerator.
func (s *Server) nearRow(ctx context.Context, asked *spec.Config, n *nearest.Neighbour, family string) nearest.NearRow {
	c, row := &n.Config, n.Row(asked)
	a, err := s.models.BestFor(spec.Key{Model: c.Model.Name, Accelerator: c.Accelerator.Name}, family)
	if err != nil {
		return row // the row has no prediction
	}
	if p, err := a.Predictor.Predict(ctx, *c); err == nil && p.Throughput > 0 {
		sec, lo, hi := p.StepSec(c.Plan.GlobalBatch())
		row.Predicted = &nearest.NearPredicted{StepTimeSec: sec, StepTimeLo: lo, StepTimeHi: hi, By: p.By}
	}
	return row
}
