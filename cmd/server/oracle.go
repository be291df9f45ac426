package server

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
)

// registerOracle adds the operations of package remote: requests with model,
// accelerator and links by their figures, as schedulers have them.
func (s *Server) registerOracle(api huma.API, m *router) {
	const tag = "oracle"
	const doc = "For programs: model, accelerator and links by their figures. The client is Go package planner/remote."
	post := func(path, id string, w weight, summary string) operation {
		return operation{http.MethodPost, path, id, tag, w, summary, doc, []int{404, 422}}
	}
	register(s, api, m, post(remote.PathPredict, "oracle-predict", light, "Throughput and memory of a configuration"),
		ofBody(s.oraclePredict))
	register(s, api, m, post(remote.PathBest, "oracle-best", search, "The best plan"),
		oracle(s, best, remote.FromChoice))
	register(s, api, m, post(remote.PathRank, "oracle-rank", search, "Plans, best first"),
		oracle(s, boundedRank, remote.FromRanking))
	register(s, api, m, post(remote.PathCurve, "oracle-curve", search, "The best plan of every number of devices"),
		oracle(s, boundedCurve, remote.FromCurve))
}

// oracle returns a handler that answers with of, converted by wire.
func oracle[A, B any](s *Server, of func(context.Context, *planner.Planner, planner.Request) (A, error), wire func(A) B) func(context.Context, *body[remote.PlanRequest]) (B, error) {
	return func(ctx context.Context, in *body[remote.PlanRequest]) (B, error) {
		var none B
		r := in.Body.Request.Planner()
		if err := checkRequest(&r); err != nil {
			return none, err
		}
		a, err := s.models.BestFor(spec.Key{Model: r.Model.Name, Accelerator: r.Accelerator.Name}, in.Body.Family)
		if err != nil {
			return none, err
		}
		out, err := of(ctx, a.Planner, r)
		if err != nil {
			p := problem.Of(err)
			p.Infeasible, p.Planner = nil, remote.FromInfeasible(err)
			return none, p
		}
		return wire(out), nil
	}
}

func best(ctx context.Context, pl *planner.Planner, r planner.Request) (planner.Choice, error) {
	return pl.Best(ctx, r)
}

// boundedRank returns at most answer.MaxRows choices that fit and as many that do not. A
// request for more is an error.
func boundedRank(ctx context.Context, pl *planner.Planner, r planner.Request) (planner.Ranking, error) {
	all := r.Top == 0
	if all {
		r.Top = answer.MaxRows
	}
	if most := max(r.Top, r.TopMisses); most > answer.MaxRows {
		return planner.Ranking{}, tooManyChoices(most)
	}
	out, err := pl.Rank(ctx, r)
	found := out.Fitting
	if r.TopMisses == 0 {
		found += out.Misses
	}
	if err == nil && all && found > answer.MaxRows {
		return planner.Ranking{}, tooManyChoices(found)
	}
	return out, err
}

func tooManyChoices(n int) error {
	return problem.New(http.StatusUnprocessableEntity, problem.TypeTooLarge, fmt.Sprintf("the answer has %d choices, which is more than %d: ask for fewer with top", n, answer.MaxRows))
}

// maxPoints bounds the points of a curve.
const maxPoints = 1 << 16

// boundedCurve returns at most maxPoints points.
func boundedCurve(ctx context.Context, pl *planner.Planner, r planner.Request) (planner.Curve, error) {
	if n := max(r.Devices, r.Shape.Total()); n > maxPoints {
		return planner.Curve{}, &query.FieldError{Field: "request.devices", Value: n, Why: fmt.Sprintf("is more than the %d points of a curve", maxPoints)}
	}
	return pl.Curve(ctx, r)
}

func (s *Server) oraclePredict(ctx context.Context, in *remote.PredictRequest) (remote.Prediction, error) {
	c := &in.Config
	err := checkFigures(&c.Model, &c.Accelerator, c.Link, &c.Shape)
	if err == nil {
		err = checkPlan("config.plan", c.Plan)
	}
	if err == nil && (c.SeqLen < 0 || c.SeqLen > query.MaxSeq) {
		err = query.InRange("config.seq_len", c.SeqLen, query.MaxSeq)
	}
	if err != nil {
		return remote.Prediction{}, err
	}
	a, err := s.models.BestFor(c.Key(), in.Family)
	if err != nil {
		return remote.Prediction{}, err
	}
	p, err := a.Planner.Predict(ctx, *c)
	return remote.FromPrediction(p), err
}

// checkRequest returns a *query.FieldError for an invalid request.
func checkRequest(r *planner.Request) error {
	if err := checkFigures(&r.Model, &r.Accelerator, r.Link, &r.Shape); err != nil {
		return err
	}
	if r.Plan != nil {
		if err := checkPlan("request.plan", *r.Plan); err != nil {
			return err
		}
	}
	if err := r.Validate(); err != nil {
		return &query.FieldError{Field: "request", Err: err}
	}
	return nil
}

func checkPlan(field string, p spec.Plan) error {
	if err := p.CheckBounds(); err != nil {
		return &query.FieldError{Field: field, Value: p.String(), Err: err}
	}
	return nil
}

// checkFigures returns a *query.FieldError for an impossible model, accelerator,
// interconnect or shape.
func checkFigures(m *spec.Model, a *spec.Accelerator, l spec.Link, shape *spec.Shape) error {
	for name, n := range m.Counts() {
		most := maxCount
		if name == "tower.projector" { // parameters, which nothing multiplies
			most = math.MaxInt32
		}
		if err := checkCount(name, n, most); err != nil {
			return err
		}
	}
	if err := checkCount("cpus", shape.CPUs, maxCount); err != nil {
		return err
	}
	if err := query.CheckFigures(a); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name string
		v    float64
	}{{"param_count", m.ParamCount}, {"active_param_count", m.ActiveParamCount}, {"flops_per_sample", m.FLOPsPerSample}, {"imbalance", m.Imbalance},
		{"intra_bps", l.IntraBps}, {"inter_bps", l.InterBps}, {"link.host_bps", l.HostBps}, {"host_bytes", shape.HostBytes}} {
		if !(f.v >= 0 && f.v <= maxFigure) {
			return &query.FieldError{Field: f.name, Value: f.v, Why: fmt.Sprintf("is not in 0..%g", maxFigure)}
		}
	}
	return checkShape(shape)
}

func checkCount(name string, n, most int) error {
	if n < 0 || n > most {
		return &query.FieldError{Field: name, Value: n, Why: fmt.Sprintf("is not in 0..%d", most)}
	}
	return nil
}

// Bounds of figures, so that no product of them overflows.
const (
	maxCount  = 1 << 26
	maxFigure = 1e30
)

// checkShape makes the devices of a shape canonical.
func checkShape(shape *spec.Shape) error {
	if shape.Devices == "" {
		return nil
	}
	known, err := spec.ParseShape(shape.Devices)
	if err != nil {
		return &query.FieldError{Field: "shape.devices", Value: shape.Devices, Err: err}
	}
	shape.Devices = known.Devices
	return nil
}
