package planner

import (
	"context"
	"errors"
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrInfeasible means that no plan of the space answers the request. Errors that
// wrap it name the nearest miss.
var ErrInfeasible = errors.New("no feasible plan")

// Request asks how to train Model with GlobalBatch samples per step on some
// devices.
type Request struct {
	Model       spec.Model
	SeqLen      int // tokens per sample, 0 = Model.SeqLen
	GlobalBatch int // samples per step; 0 = any of MinBatch..MaxBatch
	Accelerator spec.Accelerator
	Link        spec.Link
	Framework   string
	Precision   spec.Precision // of proposed plans, "" = the space's default

	// MinBatch and MaxBatch bound a free global batch. The batches considered are
	// the two bounds and the numbers 2^k and 3·2^k between them.
	MinBatch, MaxBatch int

	// Devices is the number of devices. It is the largest number for Curve, and
	// for Best, Rank and Pareto where MinDevices is set.
	Devices int
	// MinDevices is the smallest number of devices, 0 = Devices. The objectives
	// Cost and MinDevices take 0 for 1.
	MinDevices int
	// PerNode is the devices of one node, for laying out Devices; 0 = 8.
	PerNode int
	// NodeHostBytes is the host memory of one node; a job may use the share of the
	// devices it has there. 0 = not limited. Shape.HostBytes, when set, replaces it.
	NodeHostBytes float64
	// Shape, when set, fixes the devices of each node; Devices is then ignored.
	Shape spec.Shape
	// Plan, when set, fixes the plan up to its Shape.
	Plan *spec.Plan

	// Objective decides which plan is best; "" = Throughput.
	Objective Objective
	// TargetThroughput is the throughput objective MinDevices must reach, samples/s.
	TargetThroughput float64
	// PricePerHour is the price of one device in any currency; 0 = 1, so that
	// costs are in device-hours.
	PricePerHour float64
	// NoiseScale is the gradient noise scale of the job in samples, for objective
	// Goodput. InitialBatch is the global batch its hyperparameters are tuned for,
	// 0 = the smallest considered. See StatisticalEfficiency.
	NoiseScale   float64
	InitialBatch int
	// Risk is the quantile of throughput that plans are compared by, in (0, 0.5];
	// 0 = 0.5, the median. 0.05 is the lower bound of the 90 % interval.
	Risk float64

	// Top limits the choices Rank returns, 0 = all. TopMisses is how many choices
	// that do not fit it returns besides; 0 = as many as Top leaves room for.
	Top, TopMisses int

	offload offloading // which plans to search
}

// Validate reports the first field of r that is missing or out of range.
func (r Request) Validate() error {
	_, err := r.normal()
	return err
}

// offloading restricts a search by whether plans offload anything.
type offloading byte

const (
	anyOffload offloading = iota
	noOffload
	onlyOffload
)

// Choice is a configuration and its prediction.
type Choice struct {
	Config     spec.Config
	Prediction spec.Prediction
	Fits       bool   // within device memory; true where memory is unknown
	Why        string // why it does not fit, "" if it does
	// Verdict tells a plan that does not fit from one that may or may not; "" where memory is unknown.
	Verdict memory.Verdict

	// CostPerSample is in Request.PricePerHour's currency.
	CostPerSample float64
	// Efficiency is the statistical efficiency of the plan's global batch, relative
	// to the initial one, in (0, 1]; 1 where the request has no noise scale.
	Efficiency float64
}

// Goodput returns throughput times Efficiency, samples/s.
func (c *Choice) Goodput() float64 { return c.Prediction.Throughput * c.Efficiency }

// Ranking lists the candidates of a request. Those that fit come first, by its
// objective; the others follow, by the memory they need. Ties break by plan and
// shape.
type Ranking struct {
	Choices   []Choice
	Evaluated int // legal candidates judged
	Fitting   int // of them, those that fit and reach the target, if any
	Misses    int // of them, those that do not fit
}

// Curve is Rubick's sensitivity curve: the best choice with at most n devices,
// for n in 1..Devices, so that throughput never falls. Counts below the first
// feasible one have no point.
type Curve struct {
	Request Request
	Points  []CurvePoint
}

// CurvePoint is one point of a Curve. Choice may use fewer than Devices.
type CurvePoint struct {
	Devices int
	Choice  Choice
}

// Space yields the configurations that may answer a request: the legal plans, or
// the measured ones. It must be safe for concurrent use.
type Space interface {
	// Configs yields normal plans. Each Config belongs to the consumer. It has no
	// error: a request without candidates yields none, and an ended ctx may cut
	// the sequence short, which the caller checks.
	Configs(ctx context.Context, r Request) iter.Seq[spec.Config]
}

// Proven is an optional interface of a Space of configurations that have all run.
type Proven interface {
	// Proven returns true if every configuration is known to fit. The planner then
	// does not check memory.
	Proven() bool
}

// Diagnostic is an optional interface of a Space that explains an empty answer.
type Diagnostic interface {
	// WhyNone returns why Configs yields nothing for r: the rule broken, or the
	// nearest candidates. r is normal.
	WhyNone(r Request) string
}
