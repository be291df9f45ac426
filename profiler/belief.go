package profiler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// belief is what is known of one (model, accelerator) key. It is worked out
// anew only when a row of the key comes in.
type belief struct {
	key    spec.Key
	points []int // all of the key, in canonical order
	rows   []spec.Measurement
	reused int // rows that are not of this run
	usable int // rows
	misses int // rows that are not OK since the last that is, but for crowded ones
	fresh  bool

	// Of the points that can still be run or have been: those that failed and
	// those skipped are left out.
	space   []int
	gains   map[int]perfmodel.Gain // nil where the family cannot tell
	halves  map[int]float64        // half width of the 90 % interval of ln T, where there is one
	steps   map[int]float64        // predicted step time, seconds
	design  []int                  // what to measure before there is a fit
	mean    float64                // of halves
	warning string
}

func (b *belief) add(m spec.Measurement) {
	b.rows, b.fresh = append(b.rows, m), false
	if perfmodel.Usable(m) {
		b.usable++
	}
	switch {
	case m.Outcome == spec.OK:
		b.misses = 0
	case !crowded(m):
		b.misses++
	}
}

// learn works out what changed.
func (r *run) learn(ctx context.Context) error {
	for _, b := range r.keys {
		if b.fresh {
			continue
		}
		if err := r.believe(ctx, b); err != nil {
			return fmt.Errorf("profiler: campaign %s, run %s: %s: %w", r.c.Name, r.label, b.key, err)
		}
		b.fresh = true
	}
	return nil
}

// believe works b out. Only the end of ctx is an error: a key that cannot be
// fitted has a warning.
func (r *run) believe(ctx context.Context, b *belief) error {
	b.space, b.warning = nil, ""
	b.gains, b.halves, b.steps, b.design = nil, map[int]float64{}, map[int]float64{}, nil
	configs := []spec.Config{}
	for _, i := range b.points {
		if outcome, done := r.done[i]; done && outcome == spec.OK || r.open(i) {
			b.space = append(b.space, i)
			configs = append(configs, r.points[i].Config)
		}
	}
	if len(b.space) == 0 {
		b.warning = "none of its points could be run"
		return ctx.Err()
	}
	fitted := r.fit(ctx, b)
	r.predict(ctx, b, fitted)
	if r.o.Family.Gain != nil {
		gains, err := r.o.Family.Gain(ctx, b.rows, configs)
		if err == nil && len(gains) != len(configs) {
			err = fmt.Errorf("%d gains for %d configurations", len(gains), len(configs))
		}
		b.takeGains(gains, err)
	}
	if b.gains == nil && fitted == nil && r.o.Family.Choose != nil {
		for _, j := range r.o.Family.Choose(configs, min(designSize, len(configs))) {
			b.design = append(b.design, b.space[j])
		}
	}
	b.mean = 0
	for _, i := range b.space {
		b.mean += b.halves[i] / float64(max(len(b.halves), 1))
	}
	return ctx.Err()
}

// designSize is how many points are designed for a family that has no Gain,
// before it has a fit.
const designSize = 8

func (b *belief) takeGains(gains []perfmodel.Gain, err error) {
	for _, g := range gains {
		if err == nil && !(g.HalfWidth >= 0 && g.HalfWidth+math.Abs(g.Fall) <= math.MaxFloat64) {
			err = fmt.Errorf("a half width of %g that falls by %g", g.HalfWidth, g.Fall)
		}
	}
	if err != nil {
		b.warning = err.Error()
		return
	}
	b.gains = map[int]perfmodel.Gain{}
	for j, i := range b.space {
		b.gains[i] = gains[j]
		if h := gains[j].HalfWidth; h > 0 { // else the family does not cover it
			b.halves[i] = h
		}
	}
}

// fit fits the family to what was measured; nil if it cannot be.
func (r *run) fit(ctx context.Context, b *belief) perfmodel.Fitted {
	switch {
	case b.usable == 0:
		b.warning = "nothing measured yet"
		return nil
	case r.o.Family.Fit == nil:
		return r.o.Family.Unfitted
	}
	fitted, _, err := r.o.Family.Fit(ctx, perfmodel.Rows(b.rows))
	if err != nil {
		b.warning = err.Error()
		if errors.Is(err, perfmodel.ErrTooFewPoints) {
			b.warning = "too few points measured for a fit"
		}
		return nil
	}
	return fitted
}

// predict fills the step times, and the intervals as far as they follow from
// predictions. Without a fit the step times are first guesses, times what those
// measured took over theirs.
func (r *run) predict(ctx context.Context, b *belief, fitted perfmodel.Fitted) {
	for _, i := range b.space {
		if fitted == nil {
			break
		}
		c := r.points[i].Config
		p, err := fitted.Predict(ctx, c)
		if err != nil {
			continue
		}
		b.steps[i], _, _ = p.StepSec(c.Plan.GlobalBatch())
		if p.Lo > 0 && p.Hi > 0 {
			b.halves[i] = math.Log(p.Hi/p.Lo) / 2
		}
	}
	if len(b.steps) == len(b.space) {
		return
	}
	scale := r.overGuess(ctx, b)
	for _, i := range b.space {
		if _, ok := b.steps[i]; !ok {
			if t := r.guess(ctx, r.points[i].Config); t > 0 {
				b.steps[i] = scale * t
			}
		}
	}
}

// overGuess returns the median of measured over guessed step times: of b, else
// of the whole run; 1 when nothing was measured.
func (r *run) overGuess(ctx context.Context, b *belief) float64 {
	for _, rows := range [][]spec.Measurement{b.rows, r.rows} {
		var ratios []float64
		for _, m := range rows {
			if t := r.guess(ctx, m.Config); t > 0 && perfmodel.Usable(m) {
				ratios = append(ratios, m.MedianStepSec()/t)
			}
		}
		if len(ratios) > 0 {
			return median(ratios)
		}
	}
	return 1
}

// cpuPeak is the peak of a CPU device nothing is known of, FLOP/s, and cpuShare
// what of a peak training reaches: round figures for a core with plain BLAS on
// small matrices, until a point has been measured.
const (
	cpuPeak  = 2e10
	cpuShare = 0.2
)

// guess returns the step time of c expected before any was measured, 0 where
// nothing can be said: the analytic model's, which is about accelerators, and
// the work over a share of the peak on CPUs.
func (r *run) guess(ctx context.Context, c spec.Config) float64 {
	if r.o.Machine.CPU {
		peak := cmp.Or(c.Accelerator.Peak(c.Plan.Precision), cpuPeak)
		return c.Model.TrainFLOPs(c.Seq()) * float64(c.Plan.GlobalBatch()) / float64(c.Plan.Devices()) / (cpuShare * peak)
	}
	p, err := (&family.Analytic{}).Predict(ctx, c)
	if err != nil {
		return 0
	}
	sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
	return sec
}

// median of at least one value; it sorts them.
func median(x []float64) float64 {
	slices.Sort(x)
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[len(x)/2]
}

// state says how well the key is known.
func (b *belief) state(r *run) ModelState {
	s := ModelState{Key: b.key, Points: len(b.points), Warning: b.warning}
	for _, i := range b.points {
		if _, ok := r.done[i]; ok {
			s.Done++
		}
	}
	s.HalfWidth, _ = b.known()
	return s
}

// known returns the half width that nine in ten points of the space have at
// most; ok is false when nothing was measured or nothing has an interval.
func (b *belief) known() (half float64, ok bool) {
	if b.usable == 0 || len(b.halves) == 0 {
		return 0, false
	}
	h := slices.Sorted(maps.Values(b.halves))
	return h[int(math.Ceil(0.9*float64(len(h))))-1], true
}
