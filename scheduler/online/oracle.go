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
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Options say how a belief learns.
type Options struct {
	Family perfmodel.Family // that is fitted; its Fit is required
	// Rows are those profiled before the run, of any keys. Of a key with none, or too
	// few to fit, nothing is believed until enough was seen.
	Rows []spec.Measurement
	// Every is the least simulated time between two fits of a key, of which the first
	// is at the beginning: what is seen in between goes into the next.
	Every   time.Duration
	Planner planner.Options
}

// Validate reports what is missing or out of range.
func (o *Options) Validate() error {
	switch {
	case o.Family.Fit == nil:
		return fmt.Errorf("online: family %q is not fitted, so it cannot learn", o.Family.Name)
	case o.Every < 0:
		return fmt.Errorf("online: fits every %v, want 0 or more", o.Every)
	}
	return o.Planner.Validate()
}

// Oracle is a scheduler.Learner. It belongs to one run; while it learns nobody may
// ask it.
type Oracle struct {
	*planner.Planner
	options Options
	models  models
	keys    map[spec.Key]*evidence
	due     []*evidence       // seen since they were fitted
	learned scheduler.Learned // its MAPE is the sum so far
}

// evidence is what is known of a key.
type evidence struct {
	key      spec.Key
	ways     map[spec.Config]*way
	order    []*way // as they were first measured
	fitted   time.Duration
	due      bool
	revision int
}

// way is one configuration that was profiled or seen.
type way struct {
	row  spec.Measurement // its StepSec are the last mostKept
	seen int
}

// mostKept bounds the step times of a configuration that are kept: their median
// goes into a fit.
const mostKept = 15

// New fits what was profiled. The error of a key that cannot be fitted is not one:
// nothing is believed of it.
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
		e = &evidence{key: key, ways: map[spec.Config]*way{}}
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

// Learn implements scheduler.Learner. A key is fitted anew when there is something
// new of it: a configuration not measured before, or one measured twice as often as
// at the last time that was so.
func (o *Oracle) Learn(ctx context.Context, now time.Duration, seen []spec.Measurement) error {
	for i := range seen {
		if err := o.take(ctx, &seen[i]); err != nil {
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
		o.Planner = o.With(o.models, changed...)
	}
	return nil
}

// take writes down a step time.
func (o *Oracle) take(ctx context.Context, m *spec.Measurement) error {
	if !perfmodel.Usable(*m) {
		return fmt.Errorf("online: step times %g of %s, outcome %q, were seen: no measurement", m.StepSec, m.Config.Key(), m.Outcome)
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

// add writes down a measurement, and returns how many there are of its
// configuration.
func (e *evidence) add(m spec.Measurement) int {
	config := normal(m.Config)
	w := e.ways[config]
	if w == nil {
		w = &way{row: m}
		w.row.StepSec = nil
		e.ways[config], e.order = w, append(e.order, w)
	}
	if w.row.StepSec = append(w.row.StepSec, m.MedianStepSec()); len(w.row.StepSec) > mostKept {
		w.row.StepSec = w.row.StepSec[1:]
	}
	w.seen++
	return w.seen
}

// measured returns what was measured of each configuration so far.
func (e *evidence) measured() map[spec.Config]figure {
	out := make(map[spec.Config]figure, len(e.ways))
	for c, w := range e.ways {
		out[c] = figure{w.row.Throughput(), len(w.row.StepSec)}
	}
	return out
}

// normal returns c as all write it that mean the same.
func normal(c spec.Config) spec.Config {
	c.SeqLen, c.Plan = c.Seq(), c.Plan.Normal()
	return c
}

// fit fits the model of a key to all that is known of it. Rows that identify
// nothing, or give no finite fit, leave it as it is.
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

// model is what is believed of a key: what is fitted, and what was measured.
type model struct {
	perfmodel.Fitted
	measured map[spec.Config]figure // when it was fitted
}

// figure is a measured throughput.
type figure struct {
	throughput float64
	n          int // step times it is the median of
}

// noise is how far from the speed of a configuration one measurement of it is taken to
// be, the standard deviation of its logarithm.
const noise = 0.02

// sure90 is half the width of the 90 % interval of a normal distribution, in standard
// deviations.
const sure90 = 1.645

// Predict returns what is fitted; of a configuration that was measured, the mean of
// both with the precision of each as its weight. A fit without an interval tells
// nothing beside a measurement.
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
	if p.Lo > 0 && p.Hi > p.Lo {
		fitted := math.Log(p.Hi/p.Lo) / 2 / sure90
		weight = fitted * fitted / (fitted*fitted + variance)
	}
	p.Throughput *= math.Pow(seen.throughput/p.Throughput, weight)
	half := math.Exp(sure90 * math.Sqrt(weight*variance))
	p.Lo, p.Hi = p.Throughput/half, p.Throughput*half
	return p, nil
}

// models are what is believed, by key.
type models map[spec.Key]model

func (m models) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if f, ok := m[c.Key()]; ok {
		return f.Predict(ctx, c)
	}
	return spec.Prediction{}, fmt.Errorf("online: nothing is believed of %s yet: %w", c.Key(), perfmodel.ErrNotCovered)
}

// Memory is what the model of c's key estimates memory with.
func (m models) Memory(c spec.Config) (memory.Estimator, error) {
	if f, ok := m[c.Key()].Fitted.(memory.Predictor); ok {
		return f.Memory(c)
	}
	return memory.Estimator{}, fmt.Errorf("online: nothing is known of the memory of %s: %w", c.Key(), perfmodel.ErrNotCovered)
}

var _ scheduler.Learner = (*Oracle)(nil)
