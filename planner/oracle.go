package planner

import (
	"context"
	"errors"
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrInfeasible means no plan of the space fits the request. Errors that wrap
// it name the nearest miss.
var ErrInfeasible = errors.New("no feasible plan")

// Request is a question to the planner: how to train Model with GlobalBatch
// samples per step on some devices.
type Request struct {
	Model       spec.Model
	SeqLen      int // tokens per sample, 0 = Model.SeqLen
	GlobalBatch int // samples per step, at least 1
	Accelerator spec.Accelerator
	Link        spec.Link
	Framework   string
	Precision   spec.Precision // of proposed plans, "" = the space's default

	// Devices is how many. For Curve it is the largest count.
	Devices int
	// PerNode is the devices of one node, for laying out Devices; 0 = 8.
	PerNode int
	// NodeHostBytes is the host memory of one node, of which a job may use the
	// share of the devices it has there; 0 = not limited. A Shape that says how
	// much host memory there is wins.
	NodeHostBytes float64
	// Shape, when set, fixes the devices of each node; Devices is then ignored.
	Shape spec.Shape
	// Plan, when set, fixes the plan up to its Shape.
	Plan *spec.Plan

	// Top limits Rank to that many choices, 0 = all.
	Top int
}

// Choice is a configuration with what is predicted for it.
type Choice struct {
	Config     spec.Config
	Prediction spec.Prediction
	Fits       bool   // within device memory, as far as memory is predicted
	Why        string // why it does not fit, "" if it does
}

// Ranking is the candidates of a request: those that fit first, by predicted
// throughput, then those that do not, by the memory they need; ties by plan
// and shape.
type Ranking struct {
	Choices   []Choice
	Evaluated int // legal candidates looked at, whether they fit or not
}

// Curve is Rubick's sensitivity curve: for each device count 1..Devices the
// best choice with at most that many devices, so that throughput never falls.
// Counts below the first feasible one have no point.
type Curve struct {
	Request Request
	Points  []CurvePoint
}

// CurvePoint is one point of a Curve. Choice may use fewer than Devices.
type CurvePoint struct {
	Devices int
	Choice  Choice
}

// Space yields the configurations a request may be answered with: a legal plan
// space, or the ones that were measured. Plans it yields are normal.
type Space interface {
	Configs(ctx context.Context, r Request) iter.Seq[spec.Config]
}

// Proven is an optional interface of a Space: when it returns true every
// configuration of the space has run, and is taken to fit.
type Proven interface{ Proven() bool }

// Diagnostic is an optional interface of a Space: why it yields nothing for a
// request, naming the rule or what there is instead.
type Diagnostic interface{ WhyNone(r Request) string }
