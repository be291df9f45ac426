package analytic

import (
	"context"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
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
func (p Parts) Scaled(f float64) Parts {
	for _, v := range []*float64{&p.Compute, &p.Recompute, &p.TP, &p.CP, &p.EP, &p.Pipeline, &p.DP, &p.Optimizer, &p.Offload, &p.Launch, &p.Fixed} {
		*v *= f
	}
	return p
}

// Predict returns the throughput and memory of c. If a required value is missing, the error names it and wraps
// perfmodel.ErrNotCovered.
func (*Model) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	return Shipped().Physics.Predict(&c, "analytic")
}

// Prepare implements perfmodel.Preparer.
func (*Model) Prepare(c spec.Config) (func(spec.Plan) (spec.Prediction, error), error) {
	return Shipped().Physics.prepare(&c, "analytic")
}

// Memory implements memory.Predictor.
func (*Model) Memory(c spec.Config) (memory.Estimator, error) { return Shipped().Memory.For(c) }

// Explain returns the predicted step time of c by cause.
func (*Model) Explain(c spec.Config) (Parts, error) { return Shipped().Physics.Explain(&c) }

// MarshalBinary implements perfmodel.Fitted. The model has no parameters.
func (*Model) MarshalBinary() ([]byte, error) { return []byte("{}"), nil }

// Prepared holds what depends on a Config but not on its plan.
type Prepared struct {
	by      string
	wide    *Widths
	machine machine
	work    work
	Memory  memory.Estimator
	memBps  float64 // from the datasheet
}

func (pr *Prepared) init(k *constants, cal *memory.Calibration, c *spec.Config) error {
	pr.memBps = c.Accelerator.MemBps
	if err := newMachine(k, c, &pr.machine); err != nil {
		return err
	}
	if err := newWork(c, &pr.work); err != nil {
		return err
	}
	var err error
	pr.Memory, err = cal.For(*c)
	return err
}

func (pr *Prepared) predict(p *spec.Plan) (spec.Prediction, error) {
	parts, sec, err := pr.Seconds(p)
	if err != nil {
		return spec.Prediction{}, err
	}
	thr := float64(p.GlobalBatch()) / sec
	spread := math.Exp(pr.wide.HalfWidth(&parts, sec))
	return spec.Prediction{Throughput: thr, Lo: thr / spread, Hi: thr * spread, By: pr.by, Warnings: pr.Warnings(p)}, nil
}

// Seconds returns the step time of a normal plan, and its parts. The error wraps perfmodel.ErrNotCovered.
func (pr *Prepared) Seconds(p *spec.Plan) (parts Parts, sec float64, err error) {
	if err := p.CheckBounds(); err != nil {
		return parts, 0, fmt.Errorf("analytic: %w: %w", err, perfmodel.ErrNotCovered)
	}
	if p.ParamServers > 0 || p.Async {
		return parts, 0, fmt.Errorf("analytic: plan %s has parameter servers or asynchronous updates: %w", *p, perfmodel.ErrNotCovered)
	}
	parts = pr.parts(p)
	sec = parts.Total()
	if !(sec > 0) || sec > 1e12 {
		return parts, 0, fmt.Errorf("analytic: plan %s gives a step of %g s: %w", *p, sec, perfmodel.ErrNotCovered)
	}
	return parts, sec, nil
}

// Warnings returns the assumptions about devices and links under p. The caller must not change the slice.
func (pr *Prepared) Warnings(p *spec.Plan) []error { return pr.machine.warnings(p.Precision) }
