package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/trust"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spacefill"
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
	Rows     []NearRow `json:"rows" doc:"Nearest first."`
	Compared int       `json:"compared" doc:"Number of measurements compared: all stored ones with a step time or out of memory."`
}

// NearRow is a measurement, its distance to the plan asked about, and what the performance model says about it.
type NearRow struct {
	Distance    float64        `json:"distance" doc:"Sum over what differs: each factor of two between sizes and each other name counts with its weight in the covariance of the residuals of performance models; 0 = the same."`
	Differs     []Difference   `json:"differs"`
	Model       string         `json:"model"`
	Accelerator string         `json:"accelerator"`
	Devices     int            `json:"devices"`
	Plan        string         `json:"plan"`
	Outcome     spec.Outcome   `json:"outcome"`
	StepTimeSec float64        `json:"step_time_s" doc:"Median; 0 if out of memory or not recorded."`
	MemGiB      float64        `json:"mem_gib" doc:"Peak; 0 if not recorded."`
	Predicted   *NearPredicted `json:"predicted,omitempty" doc:"What the performance model of the row's own model and accelerator predicts; absent where it cannot."`
	Doubt       string         `json:"doubt,omitempty" doc:"Why the row is neither fitted nor scored."`
	Source      string         `json:"source"`
	Origin      string         `json:"origin,omitempty" doc:"Place in the source."`
	Document    string         `json:"document,omitempty" doc:"File in which the source states the row, and its commit."`
	URL         string         `json:"url,omitempty" doc:"Where the source is published."`
	Framework   string         `json:"framework,omitempty"`
}

// NearPredicted is the predicted step time of a measurement.
type NearPredicted struct {
	StepTimeSec float64 `json:"step_time_s"`
	StepTimeLo  float64 `json:"step_time_lo_s"`
	StepTimeHi  float64 `json:"step_time_hi_s"`
	By          string  `json:"by"`
}

// Difference is something in which a measurement differs from the plan asked about.
type Difference struct {
	What     string `json:"what" example:"dp"`
	Asked    string `json:"asked"`
	Measured string `json:"measured"`
}

// Sources is the JSON of pacer store list.
type Sources struct {
	Groups []trust.Group `json:"groups"`
}

// registerNearest adds the operations that say what predictions rest on.
func (s *Server) registerNearest(api huma.API, m *router) {
	register(s, api, m, operation{http.MethodPost, "/v1/nearest", "nearest", "questions", search, "The measurements nearest to a plan",
		"Stored measurements by their distance to a plan, with their sources and with what the performance model predicts for them.", []int{404, 422}},
		func(ctx context.Context, in *body[NearestRequest]) (Nearest, error) { return s.nearest(ctx, &in.Body) })
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
	found, compared, err := s.nearRows(ctx, &choice.Config, cmp.Or(in.Top, 10))
	out := Nearest{Rows: []NearRow{}, Compared: compared}
	for i := range found {
		out.Rows = append(out.Rows, s.nearRow(ctx, &choice.Config, &found[i], in.Family))
	}
	return out, err
}

// neighbour is a measurement and its distance.
type neighbour struct {
	spec.Measurement
	distance float64
}

// nearRows returns the top measurements nearest to c, one of each configuration and source, and how many were compared.
func (s *Server) nearRows(ctx context.Context, c *spec.Config, top int) (out []neighbour, compared int, err error) {
	distance := spacefill.DistanceFrom(c)
	for m, err := range s.db.Query(ctx, store.Filter{}) {
		if err != nil {
			return nil, 0, err
		}
		if m.Outcome != spec.OK && m.Outcome != spec.OOM || m.Config.Alone() { // a rank alone is near no whole plan
			continue
		}
		compared++
		d := distance(&m.Config)
		if len(out) == top && d >= out[top-1].distance {
			continue
		}
		if slices.ContainsFunc(out, func(n neighbour) bool { return n.Source == m.Source && n.Config == m.Config }) {
			continue
		}
		i, _ := slices.BinarySearchFunc(out, d, func(n neighbour, d float64) int { return cmp.Compare(n.distance, d) })
		out = slices.Insert(out, i, neighbour{m, d})
		out = out[:min(len(out), top)]
	}
	return out, compared, nil
}

func (s *Server) nearRow(ctx context.Context, asked *spec.Config, n *neighbour, family string) NearRow {
	c := &n.Config
	row := NearRow{Distance: n.distance, Differs: differences(asked, c), Model: c.Model.Name, Accelerator: c.Accelerator.Name, Devices: c.Plan.Devices(),
		Plan: c.Plan.String(), Outcome: n.Outcome, StepTimeSec: n.MedianStepSec(), MemGiB: n.PeakBytes / memory.GiB, Doubt: n.DoubtReason(),
		Source: n.Source, Origin: n.Origin, Document: documentOf(n.Env), URL: sourceURL(n.Source), Framework: c.Framework}
	a, err := s.models.BestFor(spec.Key{Model: c.Model.Name, Accelerator: c.Accelerator.Name}, family)
	if err != nil {
		return row // the row has no prediction
	}
	if p, err := a.Predictor.Predict(ctx, *c); err == nil && p.Throughput > 0 {
		sec, lo, hi := p.StepSec(c.Plan.GlobalBatch())
		row.Predicted = &NearPredicted{sec, lo, hi, p.By}
	}
	return row
}

// documentOf returns the file and commit in the facts of a row, "" without them.
func documentOf(env map[string]string) string {
	file, commit := env["source_path"], env["source_commit"]
	if file != "" && commit != "" {
		file += "@" + commit[:min(len(commit), 12)]
	}
	return file
}

// sourceURL returns the address of a public data set, "" of other sources.
func sourceURL(source string) string {
	name, _, _ := strings.Cut(source, "/")
	for _, i := range datasets.Importers() {
		if i.Name == name && strings.HasPrefix(i.URL, "https://") {
			return i.URL
		}
	}
	return ""
}

// differences lists what differs between two configurations.
func differences(asked, measured *spec.Config) []Difference {
	out := []Difference{}
	add := func(what, a, b string) {
		if a != b {
			out = append(out, Difference{what, a, b})
		}
	}
	add("model", asked.Model.Name, measured.Model.Name)
	add("accelerator", asked.Accelerator.Name, measured.Accelerator.Name)
	add("devices of each node", query.ShapeText(asked.Shape), query.ShapeText(measured.Shape))
	add("tokens per sample", fmt.Sprint(asked.Seq()), fmt.Sprint(measured.Seq()))
	add("global batch", fmt.Sprint(asked.Plan.GlobalBatch()), fmt.Sprint(measured.Plan.GlobalBatch()))
	a, b := planParts(asked.Plan), planParts(measured.Plan)
	for _, part := range planOrder {
		add(part, cmp.Or(a[part], "-"), cmp.Or(b[part], "-"))
	}
	add("training stack", cmp.Or(asked.Framework, "any"), cmp.Or(measured.Framework, "not recorded"))
	return out
}

// planOrder are the parts of a plan, in the order of its text.
var planOrder = []string{"dp", "tp", "pp", "cp", "ep", "vp", "schedule", "mb", "ga", "zero", "shard", "offload", "recompute", "sp", "precision"}

// planParts returns the parts of a plan as text, by the names that the API gives them.
func planParts(p spec.Plan) map[string]string {
	b, err := json.Marshal(p.Normal())
	var parts map[string]any
	if err == nil {
		err = json.Unmarshal(b, &parts)
	}
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for name, v := range parts {
		if v == true {
			v = 1 // as in the text of a plan
		}
		out[name] = fmt.Sprint(v)
	}
	return out
}
