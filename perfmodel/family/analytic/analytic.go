package analytic

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Family is the analytic model as a perfmodel.Family. It needs no measurement.
var Family = perfmodel.Family{
	Name:     "analytic",
	Doc:      "roofline, collectives, pipeline bubble and memory from datasheets; needs no measurement (Williams 2009; Narayanan SC 2021; Rajbhandari SC 2020)",
	Load:     func([]byte) (perfmodel.Fitted, error) { return &Model{}, nil },
	Unfitted: &Model{},
}

// Model predicts a step from first principles: the work of each layer at the device's datasheet rates, the
// traffic of each kind of parallelism on its links, and the pipeline schedule. Its constants are those of
// Shipped. Its methods are safe for concurrent use.
type Model struct{}

// Parts is a predicted step time split by cause, in seconds.
type Parts struct {
	Compute   float64 // forward and backward on the busiest stage, all micro-batches, and accumulation of their gradients
	Recompute float64 // forward work repeated in the backward pass
	TP        float64 // exposed tensor parallel traffic
	CP        float64 // exposed context parallel traffic
	EP        float64 // exposed expert parallel traffic
	Pipeline  float64 // bubble and stage-to-stage transfers
	DP        float64 // exposed data parallel and ZeRO traffic
	Optimizer float64
	Offload   float64 // host link and CPU optimizer
	Launch    float64 // time that the device waits for the host
	Fixed     float64
}

// Total returns the step time.
func (p Parts) Total() float64 {
	return p.Compute + p.Recompute + p.TP + p.CP + p.EP + p.Pipeline + p.DP + p.Optimizer + p.Offload + p.Launch + p.Fixed
}

// Scaled returns every part times f.
func (p Parts) Scaled(f float64) (out Parts) {
	out.add(&p, f)
	return out
}

// add adds every part of q times f.
func (p *Parts) add(q *Parts, f float64) {
	p.Compute += f * q.Compute
	p.Recompute += f * q.Recompute
	p.TP += f * q.TP
	p.CP += f * q.CP
	p.EP += f * q.EP
	p.Pipeline += f * q.Pipeline
	p.DP += f * q.DP
	p.Optimizer += f * q.Optimizer
	p.Offload += f * q.Offload
	p.Launch += f * q.Launch
	p.Fixed += f * q.Fixed
}

// Predict returns the throughput and memory of c. If a required value is missing, the error names it and wraps
// perfmodel.ErrNotCovered.
func (*Model) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	return Shipped().Physics.Predict(&c, "analytic")
}

// Prepare implements perfmodel.Preparer.
func (*Model) Prepare(c spec.Config) (perfmodel.Prepared, error) {
	s, err := Shipped().Physics.prepare(&c, "analytic")
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Memory implements memory.Predictor.
func (*Model) Memory(c spec.Config) (memory.Estimator, error) { return Shipped().Memory.For(c) }

// Explain returns the predicted step time of c by cause.
func (*Model) Explain(c spec.Config) (Parts, error) { return Shipped().Physics.Explain(&c) }

// StackWeights is Physics.StackWeights before any measurement.
func (*Model) StackWeights(c spec.Config) (weight [stack.MaxChoices]float64, measured bool, err error) {
	return Shipped().Physics.StackWeights(&c)
}

// MarshalBinary implements perfmodel.Fitted. The model has no parameters.
func (*Model) MarshalBinary() ([]byte, error) { return []byte("{}"), nil }

// Prepared holds what depends on a Config but not on its plan.
type Prepared struct {
	by       string
	wide     *Widths
	choices  *stack.Choices
	variants []variant // of choices; nil if there is only one
	weight   *weights  // of variants
	machine  machine   // on the first of choices
	machines []machine // on each of variants; nil where they are made for each plan
	choice   int       // index of the variant that machine is on
	offloads bool      // the step time on one of variants depends on the memory of activations
	work     work
	alone    int    // spec.Config.AloneStage
	own      *owned // of the plan that is computed, nil where it is not known yet
	Memory   *memory.Estimator
	memBps   float64 // from the datasheet
}

func (pr *Prepared) init(v variant, cal *memory.Calibration, c *spec.Config) error {
	pr.memBps, pr.alone = c.Accelerator.MemBps, c.AloneStage
	pr.offloads = v.stack.offloads || slices.ContainsFunc(pr.variants, func(v variant) bool { return v.stack.offloads })
	if err := newMachine(v, c, &pr.machine); err != nil {
		return err
	}
	if err := newWork(c, &pr.work); err != nil {
		return err
	}
	width := pr.work.core / (2 * pr.work.heads)
	pr.work.slow, pr.work.slowBack = slowHeads(pr.machine.gen.exps, width), slowHeads(pr.machine.gen.exps/flashBackward, width)
	e, err := cal.For(*c)
	pr.Memory = &e
	return err
}

func (pr *Prepared) predict(p *spec.Plan) (spec.Prediction, error) {
	e, err := pr.Estimate(p)
	if err != nil {
		return spec.Prediction{}, err
	}
	return pr.prediction(p, &e), nil
}

// prediction returns that of an estimate.
func (pr *Prepared) prediction(p *spec.Plan, e *Estimate) spec.Prediction {
	sec := e.Parts.Total()
	thr := float64(p.GlobalBatch()) / sec
	half := pr.wide.HalfWidth(pr.work.moe > 0, &e.Parts, sec)
	if e.Between > 0 {
		between := stats.Normal90 * e.Between
		half = math.Sqrt(half*half + between*between)
	}
	spread := math.Exp(half)
	return spec.Prediction{Throughput: thr, Lo: thr / spread, Hi: thr * spread, By: pr.by, Warnings: pr.Warnings(p)}
}

// Estimate is a predicted step time.
type Estimate struct {
	Parts   Parts   // sums to the step time
	Log     float64 // logarithm of the step time in seconds
	Between float64 // standard deviation of the logarithm between the choices of stacks
}

// Estimate returns the step time of a normal plan. If the training stack is not stated, it is the weighted geometric
// mean over the choices. The error wraps perfmodel.ErrNotCovered.
func (pr *Prepared) Estimate(p *spec.Plan) (Estimate, error) {
	if err := covered(p); err != nil {
		return Estimate{}, err
	}
	e := pr.at(p, nil)
	return e, e.check(p)
}

// covered returns an error for a plan that the model does not predict.
func covered(p *spec.Plan) error {
	if err := p.CheckBounds(); err != nil {
		return fmt.Errorf("analytic: %w: %w", err, perfmodel.ErrNotCovered)
	}
	if p.ParamServers > 0 || p.Async {
		return fmt.Errorf("analytic: plan %s has parameter servers or asynchronous updates: %w", *p, perfmodel.ErrNotCovered)
	}
	return nil
}

var maxLog = math.Log(1e12)

// check returns an error for a step time that is no plausible number.
func (e *Estimate) check(p *spec.Plan) error {
	if math.IsNaN(e.Log) || e.Log < -500 || e.Log > maxLog {
		return fmt.Errorf("analytic: plan %s gives a step of %g s: %w", *p, math.Exp(e.Log), perfmodel.ErrNotCovered)
	}
	return nil
}

// at returns the step time of a normal plan, with constants k unless that is nil.
func (pr *Prepared) at(p *spec.Plan, k *constants) Estimate {
	if pr.variants != nil {
		return pr.mean(p, k)
	}
	if k != nil {
		pr.machine.use(k)
	}
	return estimateOf(pr.parts(p))
}

// estimateOf returns the estimate on one stack.
func estimateOf(p Parts) Estimate { return Estimate{Parts: p, Log: math.Log(p.Total())} }

// mean is at for the weighted geometric mean over the variants.
func (pr *Prepared) mean(p *spec.Plan, k *constants) Estimate {
	var mean geometricMean
	one, own := *pr, pr.owned(p)
	one.own = &own
	for i, w := range &pr.weight[stack.UseOf(p)] {
		if w == 0 {
			continue
		}
		parts := one.on(i, p, k)
		mean.add(&parts, w)
	}
	return mean.estimate()
}

// geometricMean is the weighted geometric mean of step times.
type geometricMean struct {
	sum         Parts // weighted
	log, square float64
}

func (g *geometricMean) add(p *Parts, w float64) {
	log := math.Log(p.Total())
	g.log += w * log
	g.square += w * log * log
	g.sum.add(p, w)
}

func (g *geometricMean) estimate() Estimate {
	return Estimate{Parts: g.sum.Scaled(math.Exp(g.log) / g.sum.Total()), Log: g.log, Between: math.Sqrt(max(g.square-g.log*g.log, 0))}
}

// meanLog is mean's Log alone. It changes pr, and sets it back to the first variant.
func (pr *Prepared) meanLog(p *spec.Plan, k *constants) (log float64) {
	for i, w := range &pr.weight[stack.UseOf(p)] {
		if w > 0 {
			parts := pr.on(i, p, k)
			log += w * math.Log(parts.Total())
		}
	}
	pr.choice, pr.machine.stack = 0, pr.variants[0].stack
	return log
}

// apart returns, for each choice of stack, the difference of its logarithm of the step time from the mean e, times the
// square root of its probability. The squares add up to the variance between the choices.
func (pr *Prepared) apart(p *spec.Plan, e *Estimate) (out [stack.MaxChoices]float64) {
	if pr.variants == nil {
		return out
	}
	one := *pr
	for i, w := range &pr.weight[stack.UseOf(p)] {
		if w > 0 {
			parts := one.on(i, p, nil)
			out[i] = math.Sqrt(w) * (math.Log(parts.Total()) - e.Log)
		}
	}
	return out
}

// on returns the parts of a step on the variant of index i, with constants k unless that is nil. It changes pr to the
// variant.
func (pr *Prepared) on(i int, p *spec.Plan, k *constants) Parts {
	of := *p
	if pr.variants == nil {
		return pr.parts(&of)
	}
	pr.use(i, k)
	return pr.parts(&of)
}

// use changes pr to the variant of index i, with constants k unless that is nil.
func (pr *Prepared) use(i int, k *constants) {
	pr.choice = i
	if k == nil && pr.machines != nil {
		pr.machine = pr.machines[i]
		return
	}
	v := &pr.variants[i]
	if k == nil {
		k = v.k
	}
	pr.machine.stack = v.stack
	pr.machine.use(k)
}

// SetSeq changes pr to samples of seq tokens of the model m that it was opened with; 0 = the model's own length. Memory
// stays that of the length before, unless a stack offloads activations. The error wraps perfmodel.ErrNotCovered.
func (pr *Prepared) SetSeq(m *spec.Model, seq int) error {
	shape := shapeOf(m)
	return pr.setSeq(&shape, seq)
}

// setSeq is SetSeq for a model that shapeOf has returned.
func (pr *Prepared) setSeq(shape *spec.Model, seq int) error {
	if pr.offloads {
		moved := pr.Memory.AtSeq(seq)
		pr.Memory = &moved
	}
	return pr.work.setSeq(shape, cmp.Or(seq, shape.SeqLen))
}

// Warnings returns the assumptions about devices and links under p. The caller must not change the slice.
func (pr *Prepared) Warnings(p *spec.Plan) []error { return pr.machine.warnings(p.Precision) }
