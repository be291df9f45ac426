package online

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Options configure an Oracle.
type Options struct {
	Family perfmodel.Family // the family to fit; its Fit is required
	// Rows are the profiled measurements, of any keys. A key with too few rows for a fit has no estimate until enough
	// are observed.
	Rows []spec.Measurement
	// Every is the least simulated time between two fits of a key; the initial fit counts. Observations in between go
	// into the next fit.
	Every   time.Duration
	Planner planner.Options
}

// Validate reports what is missing or out of range.
func (o *Options) Validate() error {
	switch {
	case o.Family.Fit == nil:
		return fmt.Errorf("online: family %q has no fit, so it cannot learn", o.Family.Name)
	case o.Every < 0:
		return fmt.Errorf("online: fits every %v, want 0 or more", o.Every)
	}
	return o.Planner.Validate()
}

// Oracle is a scheduler.Learner for one run. Predict, Best and Curve must not run concurrently with Learn.
type Oracle struct {
	*planner.Planner
	options Options
	models  models
	keys    map[spec.Key]*evidence
	due     []*evidence       // keys with observations since their last fit
	learned scheduler.Learned // its MAPE holds the sum
}

// evidence is the measurements of a key.
type evidence struct {
	key      spec.Key
	configs  map[spec.Config]*history
	order    []*history // in order of their first measurement
	fitted   time.Duration
	due      bool
	revision int
}

// history is the measurements of one configuration.
type history struct {
	row  spec.Measurement // its StepSec has the last maxKept
	seen int
}

// maxKept limits the step times kept per configuration; a fit uses their median.
const maxKept = 15

// New fits the profiled rows. A key that cannot be fitted has no estimate, which is not an error.
func New(ctx context.Context, o Options) (*Oracle, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	out := &Oracle{options: o, models: models{}, keys: map[spec.Key]*evidence{}}
	for _, m := range perfmodel.MergeRepeats(slices.DeleteFunc(slices.Clone(o.Rows), func(m spec.Measurement) bool { return !perfmodel.Usable(m) })) {
		out.evidence(m.Config.Key()).add(m)
	}
	for _, key := range slices.SortedFunc(maps.Keys(out.keys), perfmodel.CompareKeys) {
		if err := out.fit(ctx, out.keys[key]); err != nil {
			return nil, err
		}
	}
	out.Planner = planner.New(out.models, o.Planner)
	return out, nil
}

func (o *Oracle) evidence(key spec.Key) *evidence {
	e := o.keys[key]
	if e == nil {
		e = &evidence{key: key, configs: map[spec.Config]*history{}}
		o.keys[key] = e
	}
	return e
}

// Revision implements scheduler.Learner.
func (o *Oracle) Revision(k spec.Key) int {
	if e := o.keys[k]; e != nil {
		return e.revision
	}
	return 0
}

// Learned implements scheduler.Learner.
func (o *Oracle) Learned() scheduler.Learned {
	l := o.learned
	l.MAPE /= float64(max(l.Known, 1))
	return l
}

// Learn implements scheduler.Learner. A key is due for a fit when a configuration's number of measurements reaches a
// power of two.
func (o *Oracle) Learn(ctx context.Context, now time.Duration, seen []spec.Measurement) error {
	for i := range seen {
		if err := o.record(ctx, &seen[i]); err != nil {
			return err
		}
	}
	var changed []spec.Key
	waiting := o.due[:0]
	for _, e := range o.due {
		if now-e.fitted < o.options.Every {
			waiting = append(waiting, e)
			continue
		}
		e.due, e.fitted = false, now
		o.learned.Fits++
		before := e.revision
		if err := o.fit(ctx, e); err != nil {
			return err
		}
		if e.revision == before {
			o.learned.Unfit++
		} else {
			changed = append(changed, e.key)
		}
	}
	if o.due = waiting; len(changed) > 0 {
		o.Planner = o.WithPredictor(o.models, changed...)
	}
	return nil
}

// record adds a measurement, and the error of its prediction.
func (o *Oracle) record(ctx context.Context, m *spec.Measurement) error {
	if !perfmodel.Usable(*m) {
		return fmt.Errorf("online: step times %g of %s, outcome %q: not a valid measurement", m.StepSec, m.Config.Key(), m.Outcome)
	}
	o.learned.Seen++
	p, err := o.models.Predict(ctx, m.Config)
	switch {
	case err == nil:
		sec, _, _ := p.StepSec(m.Config.Plan.GlobalBatch())
		o.learned.Known++
		o.learned.MAPE += math.Abs(sec/m.MedianStepSec() - 1)
	case !errors.Is(err, perfmodel.ErrNotCovered):
		return err
	}
	e := o.evidence(m.Config.Key())
	if seen := e.add(*m); bits.OnesCount(uint(seen)) == 1 && !e.due {
		e.due, o.due = true, append(o.due, e)
	}
	return nil
}

// add adds a measurement, and returns the number of measurements of its configuration.
func (e *evidence) add(m spec.Measurement) int {
	config := normal(m.Config)
	w := e.configs[config]
	if w == nil {
		w = &history{row: m}
		w.row.StepSec = nil
		e.configs[config], e.order = w, append(e.order, w)
	}
	if w.row.StepSec = append(w.row.StepSec, m.MedianStepSec()); len(w.row.StepSec) > maxKept {
		w.row.StepSec = w.row.StepSec[1:]
	}
	w.seen++
	return w.seen
}

// measured returns the measured throughput of each configuration.
func (e *evidence) measured() map[spec.Config]figure {
	out := make(map[spec.Config]figure, len(e.configs))
	for c, w := range e.configs {
		out[c] = figure{w.row.Throughput(), len(w.row.StepSec)}
	}
	return out
}

// normal returns the canonical form of c.
func normal(c spec.Config) spec.Config {
	c.SeqLen, c.Plan = c.Seq(), c.Plan.Normal()
	return c
}

// fit refits the model of a key to all its measurements. If the fit fails, the model stays.
func (o *Oracle) fit(ctx context.Context, e *evidence) error {
	rows := make([]spec.Measurement, len(e.order))
	for i, w := range e.order {
		rows[i] = w.row
		rows[i].StepSec = slices.Clone(w.row.StepSec)
	}
	m, _, err := o.options.Family.Fit(ctx, perfmodel.Rows(perfmodel.MergeRepeats(rows)))
	if err != nil {
		return ctx.Err()
	}
	o.models[e.key] = model{m, e.measured()}
	e.revision++
	return nil
}

// model is the estimate for a key: the fit and the measurements.
type model struct {
	perfmodel.Fitted
	measured map[spec.Config]figure // at the time of the fit
}

// figure is a measured throughput.
type figure struct {
	throughput float64
	n          int // number of step times in the median
}

// noise is the standard deviation of ln(step time) of one measurement.
const noise = 0.02

// Predict returns the fit. For a measured configuration it returns the precision-weighted mean of fit and measurement.
// A fit without an interval has no weight beside a measurement.
func (m model) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	p, err := m.Fitted.Predict(ctx, c)
	if err != nil {
		return p, err
	}
	seen, is := m.measured[normal(c)]
	if !is || !(p.Throughput > 0) {
		return p, nil
	}
	variance := noise * noise / float64(seen.n)
	weight := 1.0
	if half := p.HalfWidth(); half > 0 {
		fitted := half / stats.Normal90
		weight = fitted * fitted / (fitted*fitted + variance)
	}
	p.Throughput *= math.Pow(seen.throughput/p.Throughput, weight)
	half := math.Exp(stats.Normal90 * math.Sqrt(weight*variance))
	p.Lo, p.Hi = p.Throughput/half, p.Throughput*half
	return p, nil
}

// models are the estimates by key.
type models map[spec.Key]model

func (m models) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if f, ok := m[c.Key()]; ok {
		return f.Predict(ctx, c)
	}
	return spec.Prediction{}, fmt.Errorf("online: %s has no model yet: %w", c.Key(), perfmodel.ErrNotCovered)
}

// Memory returns the memory estimator of the model of c's key.
func (m models) Memory(c spec.Config) (memory.Estimator, error) {
	if f, ok := m[c.Key()].Fitted.(memory.Predictor); ok {
		return f.Memory(c)
	}
	return memory.Estimator{}, fmt.Errorf("online: the memory of %s is unknown: %w", c.Key(), perfmodel.ErrNotCovered)
}

var _ scheduler.Learner = (*Oracle)(nil)
