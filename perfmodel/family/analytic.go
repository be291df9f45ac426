package family

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func init() {
	register(perfmodel.Family{
		Name:     "analytic",
		Doc:      "datasheet roofline, collectives, pipeline bubble and memory; needs no measurement (Williams 2009; Narayanan SC 2021; Rajbhandari SC 2020)",
		Fit:      fitAnalytic,
		Load:     loadAnalytic,
		Unfitted: &Analytic{},
	})
}

// Analytic predicts a step from first principles: the work of each layer on
// the device's datasheet figures, the traffic of each kind of parallelism on
// its links, the schedule that joins them. The zero value is unfitted. Its
// methods are safe for concurrent use.
type Analytic struct {
	// Compute and Network multiply the predicted device time and exposed
	// communication; 0 = 1. Fit finds them.
	Compute, Network float64
	// Spread is the half width of the 90 % interval in log time, 0 = zeroShot.
	Spread float64
	Key    spec.Key // what it was fitted on; zero = nothing
}

// Parts is a predicted step time by cause, in seconds.
type Parts struct {
	Compute   float64 // forward and backward on the busiest stage, all micro-batches
	Recompute float64 // forward work done again
	TP        float64 // exposed tensor parallel traffic
	CP        float64 // exposed context parallel traffic
	EP        float64 // exposed expert parallel traffic
	Pipeline  float64 // bubble and stage-to-stage transfers
	DP        float64 // exposed data parallel and ZeRO traffic
	Optimizer float64
	Offload   float64 // host link and CPU optimizer
	Launch    float64 // host time the device waits for
	Fixed     float64
}

// Total returns the step time.
func (p Parts) Total() float64 {
	return p.Compute + p.Recompute + p.TP + p.CP + p.EP + p.Pipeline + p.DP + p.Optimizer + p.Offload + p.Launch + p.Fixed
}

// zeroShot is the half width of the 90 % interval in log time without any
// measurement: the smallest round figure within which nine in ten of the
// published step times lie for every source of bench's zero-shot table (94 %
// of all 556). The constants were chosen with those rows in view, so that a
// source unlike them may do worse.
const zeroShot = 0.40

// Predict returns the throughput and memory of c. The error wraps
// perfmodel.ErrNotCovered when a figure without which nothing can be said is
// missing, and names it.
func (a *Analytic) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	var pr prepared
	if err := a.prepare(&c, &pr); err != nil {
		return spec.Prediction{}, err
	}
	p := c.Plan.Normal()
	out, err := pr.predict(&p)
	if err == nil {
		out.MemoryBytes = pr.mem.Bytes(p)
	}
	return out, err
}

// Prepare implements perfmodel.Preparer.
func (a *Analytic) Prepare(c spec.Config) (func(spec.Plan) (spec.Prediction, error), error) {
	pr := &prepared{}
	if err := a.prepare(&c, pr); err != nil {
		return nil, err
	}
	return func(p spec.Plan) (spec.Prediction, error) {
		p = p.Normal()
		return pr.predict(&p)
	}, nil
}

// Explain returns the predicted step time of c by cause.
func (a *Analytic) Explain(c spec.Config) (Parts, error) {
	var pr prepared
	if err := a.prepare(&c, &pr); err != nil {
		return Parts{}, err
	}
	p := c.Plan.Normal()
	return pr.parts(&p), nil
}

// prepared is everything about a Config but its plan.
type prepared struct {
	compute float64
	network float64
	lo, hi  float64 // interval factors on throughput
	by      string
	machine machine
	work    work
	mem     memory.Estimator
	memBps  float64 // of the datasheet
}

func (a *Analytic) prepare(c *spec.Config, pr *prepared) error {
	pr.compute, pr.network = orOne(a.Compute), orOne(a.Network)
	spread := a.Spread
	if spread <= 0 {
		spread = zeroShot
	}
	pr.lo, pr.hi = expNeg(spread), 1/expNeg(spread)
	pr.by = "analytic"
	if a.Key != (spec.Key{}) {
		pr.by = "analytic, calibrated to " + a.Key.String()
	}
	pr.memBps = c.Accelerator.MemBps
	if err := newMachine(c, &pr.machine); err != nil {
		return err
	}
	if err := newWork(c, &pr.work); err != nil {
		return err
	}
	var err error
	pr.mem, err = memory.For(*c)
	return err
}

func orOne(x float64) float64 {
	if x <= 0 {
		return 1
	}
	return x
}

func (pr *prepared) predict(p *spec.Plan) (spec.Prediction, error) {
	if err := checkDegrees(p); err != nil {
		return spec.Prediction{}, fmt.Errorf("analytic: %w", err)
	}
	parts := pr.parts(p)
	sec := parts.Total()
	if !(sec > 0) || sec > 1e12 {
		return spec.Prediction{}, fmt.Errorf("analytic: plan %s gives a step of %g s: %w", *p, sec, perfmodel.ErrNotCovered)
	}
	thr := float64(p.GlobalBatch()) / sec
	return spec.Prediction{Throughput: thr, Lo: thr * pr.lo, Hi: thr * pr.hi, By: pr.by, Warnings: pr.machine.warnings(p.Precision)}, nil
}

// MarshalBinary writes the parameters as JSON, versioned.
func (a *Analytic) MarshalBinary() ([]byte, error) {
	return json.Marshal(analyticRecord{Version: 1, Compute: orOne(a.Compute), Network: orOne(a.Network), Spread: a.Spread, Key: a.Key})
}

type analyticRecord struct {
	Version int      `json:"version"`
	Compute float64  `json:"compute"`
	Network float64  `json:"network"`
	Spread  float64  `json:"spread"`
	Key     spec.Key `json:"key"`
}

func loadAnalytic(b []byte) (perfmodel.Fitted, error) {
	var r analyticRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("analytic: stored parameters: %w", err)
	}
	if r.Version != 1 {
		return nil, fmt.Errorf("analytic: stored parameters have version %d, want 1", r.Version)
	}
	if !(r.Compute > 0) || !(r.Network > 0) || r.Spread < 0 {
		return nil, fmt.Errorf("analytic: stored factors compute=%g network=%g spread=%g must be positive", r.Compute, r.Network, r.Spread)
	}
	return &Analytic{Compute: r.Compute, Network: r.Network, Spread: r.Spread, Key: r.Key}, nil
}
