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
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// keyState is the state of one (model, accelerator) key. It is recomputed only after a new row of its group.
type keyState struct {
	*fitGroup
	key    spec.Key
	points []int // all points of the key, in canonical order
	rows   []spec.Measurement
	reused int // number of rows of other runs
	usable int // number of usable rows
	misses int // number of rows since the last OK one, without inconclusive ones
	// visited is the number of rows that run.distances counts.
	visited int

	// The following cover the points that are measured or still open, without failed and skipped ones.
	space   []int
	gains   map[int]perfmodel.Gain // nil if the family has none
	halves  map[int]float64        // half width of the 90 % interval of ln T; may be absent
	steps   map[int]float64        // predicted step times, seconds
	design  []int                  // points to measure before the first fit
	warning string
}

// fitGroup is a set of keys with one fit: a single key, or all keys if the family is fitted to all at once.
type fitGroup struct {
	keys  []*keyState // in canonical order
	fresh bool
	// fitted means that the predictions are those of a fit.
	fitted bool
	mean   float64 // mean half width over the space of all keys, or over wanted
	// wanted are the configurations with intervals that count, nil = the points.
	wanted []spec.Config
}

// groupKeys assigns the keys to groups.
func (r *run) groupKeys() {
	all := &fitGroup{}
	for _, k := range r.keys {
		if r.o.Family.Condition == nil || len(r.groups) == 0 {
			all = &fitGroup{}
			r.groups = append(r.groups, all)
		}
		all.keys, k.fitGroup = append(all.keys, k), all
	}
}

// unmeasured reports whether no key has a row.
func (g *fitGroup) unmeasured() bool {
	return !slices.ContainsFunc(g.keys, func(k *keyState) bool { return len(k.rows) > 0 })
}

// enoughRows is the number of rows of the other keys of a group, on average, after which one without rows is overdue: its
// few points would count little for the mean interval, but a campaign measures all of its models.
const enoughRows = 4

// overdue reports whether k has no rows while the others have enough, or have some and the budget is short: see run.short.
func (k *keyState) overdue(short bool) bool {
	rows, measured := 0, 0
	for _, other := range k.keys {
		if n := len(other.rows); n > 0 {
			rows, measured = rows+n, measured+1
		}
	}
	return len(k.rows) == 0 && measured > 0 && (short || rows >= enoughRows*measured)
}

// short reports whether the budget allows at most two points for each model without rows. Those models then come first,
// so that a short campaign measures each.
func (r *run) short(h costModel) bool {
	without := 0.0
	for _, k := range r.keys {
		if len(k.rows) == 0 && slices.ContainsFunc(k.points, r.open) {
			without++
		}
	}
	_, n := r.bindingTerm(h)
	return n <= 2*without
}

// allRows returns the rows of all keys.
func (g *fitGroup) allRows() (out []spec.Measurement) {
	for _, k := range g.keys {
		out = append(out, k.rows...)
	}
	return out
}

func (k *keyState) add(m spec.Measurement) {
	k.rows = append(k.rows, m)
	if perfmodel.UsableOrAlone(m) {
		k.usable++
	}
	switch {
	case m.Outcome == spec.OK:
		k.misses = 0
	case !inconclusive(m):
		k.misses++
	}
}

// refit recomputes the groups with new rows.
func (r *run) refit(ctx context.Context) error {
	for _, g := range r.groups {
		if g.fresh {
			continue
		}
		if err := r.refitGroup(ctx, g); err != nil {
			return fmt.Errorf("profiler: campaign %s, run %s: %s: %w", r.c.Name, r.label, g, err)
		}
		g.fresh = true
	}
	return nil
}

// String names the group.
func (g *fitGroup) String() string {
	if len(g.keys) == 1 {
		return g.keys[0].key.String()
	}
	return fmt.Sprintf("%d models", len(g.keys))
}

// refitGroup recomputes g. Only the end of ctx is an error: a group that cannot be fitted gets a warning.
func (r *run) refitGroup(ctx context.Context, g *fitGroup) error {
	var configs []spec.Config
	for _, k := range g.keys {
		k.reset()
		for _, i := range k.points {
			if outcome, done := r.done[i]; done && outcome == spec.OK || r.open(i) {
				k.space = append(k.space, i)
				configs = append(configs, r.points[i].Config)
			}
		}
	}
	fitted := r.fit(ctx, g)
	g.fitted = fitted != nil
	var gains []perfmodel.Gain
	if r.o.Family.Gain != nil && len(configs) > 0 {
		var err error
		gains, err = r.o.Family.Gain(ctx, g.allRows(), configs, g.wanted)
		if err = checkGains(gains, err, len(configs)); err != nil {
			gains = nil
			g.warn(err.Error())
		}
	}
	var halves []float64
	for _, k := range g.keys {
		if len(k.space) == 0 {
			k.warning = "none of its points can be run"
			continue
		}
		r.predict(ctx, k, fitted)
		switch {
		case gains != nil:
			k.takeGains(gains[:len(k.space)])
			gains = gains[len(k.space):]
		case fitted == nil && r.o.Family.Choose != nil:
			k.design = r.designOf(k)
		}
		for _, i := range k.space {
			if h, ok := k.halves[i]; ok {
				halves = append(halves, h)
			}
		}
	}
	if g.mean = 0; g.wanted != nil {
		g.mean = r.wantedHalf(ctx, g, fitted)
		return ctx.Err()
	}
	for _, h := range halves {
		g.mean += h / float64(len(halves))
	}
	return ctx.Err()
}

// reset forgets what a fit computed.
func (k *keyState) reset() {
	k.space, k.warning = nil, ""
	k.gains, k.halves, k.steps, k.design = nil, map[int]float64{}, map[int]float64{}, nil
}

// warn sets the warning of all keys.
func (g *fitGroup) warn(text string) {
	for _, k := range g.keys {
		k.warning = text
	}
}

// designOf returns the points of k to measure before the first fit.
func (r *run) designOf(k *keyState) (out []int) {
	configs := make([]spec.Config, len(k.space))
	for j, i := range k.space {
		configs[j] = r.points[i].Config
	}
	for _, j := range r.o.Family.Choose(configs, min(designSize, len(configs))) {
		out = append(out, k.space[j])
	}
	return out
}

// designSize is the number of points that a family without Gain chooses before its first fit.
const designSize = 8

// checkGains returns err, or what is wrong with the gains of n configurations.
func checkGains(gains []perfmodel.Gain, err error, n int) error {
	if err == nil && len(gains) != n {
		return fmt.Errorf("%d gains for %d configurations", len(gains), n)
	}
	for _, g := range gains {
		if err == nil && !(g.HalfWidth >= 0 && g.HalfWidth+math.Abs(g.Fall) <= math.MaxFloat64) {
			err = fmt.Errorf("a half width of %g that falls by %g", g.HalfWidth, g.Fall)
		}
	}
	return err
}

// takeGains sets the gains of the space.
func (k *keyState) takeGains(gains []perfmodel.Gain) {
	k.gains = map[int]perfmodel.Gain{}
	for j, i := range k.space {
		k.gains[i] = gains[j]
		if h := gains[j].HalfWidth; h > 0 { // 0: the family does not cover the point
			k.halves[i] = h
		}
	}
}

// fit fits the family to the measured rows of g. It returns nil if that fails.
func (r *run) fit(ctx context.Context, g *fitGroup) (fitted perfmodel.Fitted) {
	rows, err := g.allRows(), error(nil)
	switch {
	case !slices.ContainsFunc(rows, func(m spec.Measurement) bool {
		return perfmodel.Usable(m) || r.o.Family.Alone && perfmodel.UsableOrAlone(m)
	}):
		g.warn("nothing measured yet")
		return nil
	case r.o.Family.Condition != nil:
		fitted, err = r.o.Family.Condition(ctx, rows)
	case r.o.Family.Fit != nil:
		fitted, _, err = r.o.Family.Fit(ctx, perfmodel.Rows(rows))
	default:
		return r.o.Family.Unfitted
	}
	if err != nil {
		why := err.Error()
		if errors.Is(err, perfmodel.ErrTooFewPoints) {
			why = "too few points measured for a fit"
		}
		g.warn(why)
		return nil
	}
	return fitted
}

// predict fills the step times, and the intervals of predictions that have one. Without a fit, step times are
// estimates scaled by the measured ones.
func (r *run) predict(ctx context.Context, k *keyState, fitted perfmodel.Fitted) {
	for _, i := range k.space {
		if fitted == nil {
			break
		}
		c := r.points[i].Config
		p, err := fitted.Predict(ctx, c)
		if err != nil {
			continue
		}
		k.steps[i], _, _ = p.StepSec(c.Plan.GlobalBatch())
		if p.Lo > 0 && p.Hi > 0 {
			k.halves[i] = p.HalfWidth()
		}
	}
	if len(k.steps) == len(k.space) {
		return
	}
	scale := r.guessScale(ctx, k)
	for _, i := range k.space {
		if _, ok := k.steps[i]; !ok {
			if t := r.guess(ctx, r.points[i].Config); t > 0 {
				k.steps[i] = scale * t
			}
		}
	}
}

// guessScale returns the median ratio of measured to estimated step times: of k if it has any, else of the
// whole run, else 1.
func (r *run) guessScale(ctx context.Context, k *keyState) float64 {
	for _, rows := range [][]spec.Measurement{k.rows, r.rows} {
		var ratios []float64
		for _, m := range rows {
			if t := r.guess(ctx, m.Config); t > 0 && perfmodel.UsableOrAlone(m) {
				ratios = append(ratios, m.MedianStepSec()/t)
			}
		}
		if len(ratios) > 0 {
			return stats.Median(ratios)
		}
	}
	return 1
}

// cpuPeak is the assumed peak of an unknown CPU device, FLOP/s. cpuShare is the share of a peak that training
// reaches. Both are round numbers for a core with plain BLAS on small matrices, used until a point has been
// measured.
const (
	cpuPeak  = 2e10
	cpuShare = 0.2
)

// guess returns the expected step time of c before any measurement, 0 if unknown. On accelerators
// it is the analytic model's prediction; on CPUs it is the work over a share of the peak.
func (r *run) guess(ctx context.Context, c spec.Config) float64 {
	if r.o.Machine.CPU {
		peak := cmp.Or(c.Accelerator.Peak(c.Plan.Precision), cpuPeak)
		return c.Model.TrainFLOPs(c.Seq()) * float64(c.Plan.GlobalBatch()) / float64(c.Plan.Devices()) / (cpuShare * peak)
	}
	p, err := (&analytic.Model{}).Predict(ctx, c)
	if err != nil {
		return 0
	}
	sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
	return sec
}

// state summarises the key.
func (k *keyState) state(r *run) ModelState {
	s := ModelState{Key: k.key, Points: len(k.points), Warning: k.warning}
	for _, i := range k.points {
		if _, ok := r.done[i]; ok {
			s.Done++
		}
	}
	s.HalfWidth, _ = k.halfWidth90()
	return s
}

// halfWidth90 returns the 90th percentile of the half widths over the space. ok is false without a
// measurement or an interval.
func (k *keyState) halfWidth90() (half float64, ok bool) {
	if k.usable == 0 || len(k.halves) == 0 {
		return 0, false
	}
	return stats.NearestRank(slices.Sorted(maps.Values(k.halves)), 0.9), true
}
