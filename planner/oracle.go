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
	GlobalBatch int // samples per step; 0 = any of MinBatch..MaxBatch
	Accelerator spec.Accelerator
	Link        spec.Link
	Framework   string
	Precision   spec.Precision // of proposed plans, "" = the space's default

	// MinBatch and MaxBatch bound a free global batch. Of the numbers between
	// them those of the forms 2^k and 3·2^k are considered, and the two bounds.
	MinBatch, MaxBatch int

	// Devices is how many. For Curve it is the largest count, and for Best, Rank
	// and Pareto too where MinDevices is set.
	Devices int
	// MinDevices, when set, makes Devices the most and this the least. The
	// objectives Cost and MinDevices take 0 for 1.
	MinDevices int
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

	// Objective is what is best; "" is Throughput.
	Objective Objective
	// TargetThroughput is what objective MinDevices asks for, samples/s.
	TargetThroughput float64
	// PricePerHour is that of one device, in any currency; 0 = 1, so that costs
	// are in device-hours.
	PricePerHour float64
	// NoiseScale is the gradient noise scale of the job, in samples, for
	// objective Goodput; InitialBatch the global batch its hyperparameters are
	// for, 0 = the least considered. See StatisticalEfficiency.
	NoiseScale   float64
	InitialBatch int
	// Risk, when set, compares plans by the throughput they fall short of with
	// that probability, in (0, 0.5]; 0 by the median. 0.05 is the lower bound of
	// the 90 % interval.
	Risk float64

	// Top limits Rank to that many choices, 0 = all. TopMisses is how many of those
	// that do not fit it lists besides; 0 = as many as Top leaves room for.
	Top, TopMisses int

	offload offloading // of the plans looked at
}

// offloading restricts a search by whether plans offload anything.
type offloading byte

const (
	anyOffload offloading = iota
	noOffload
	onlyOffload
)

// Choice is a configuration with what is predicted for it.
type Choice struct {
	Config     spec.Config
	Prediction spec.Prediction
	Fits       bool   // within device memory, as far as memory is predicted
	Why        string // why it does not fit, "" if it does

	// CostPerSample is in Request.PricePerHour's currency.
	CostPerSample float64
	// Efficiency is what a sample teaches at the plan's global batch, relative to
	// the initial one, in (0, 1]; 1 where the request names no noise scale.
	Efficiency float64
}

// Goodput returns throughput times Efficiency, samples/s.
func (c *Choice) Goodput() float64 { return c.Prediction.Throughput * c.Efficiency }

// Ranking is the candidates of a request: those that fit first, by its
// objective, then those that do not, by the memory they need; ties by plan and
// shape.
type Ranking struct {
	Choices   []Choice
	Evaluated int // legal candidates looked at, whether they fit or not
	Fitting   int // of them, those that fit, and reach the target where there is one
	Misses    int // and those that do not fit
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
