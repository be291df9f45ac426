package rubick

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/design"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// gainDraws is the number of draws of the parameters over which a gain is averaged, for each reading of
// pipelines, as long as there are fewer rows than parameters. With more rows, only the mode is used.
const gainDraws = 16

// gain implements Family.Gain: the expected decrease of the mean interval over the space, or over wanted, including the
// widening for features and sizes that no row has.
//
// The formula is linearised at draws from the posterior, so a Fall depends on the measured rows and not on the
// result of the next one. As long as the reading of pipelines is uncertain (see fitBest), the readings are
// weighted by their fit, and their difference counts as variance. Repeats count as one row at their median, so
// the gain of a repeat is 0.
//
// HalfWidth is that of the fitted model's predictions. With fewer than two rows there is no fitted model, and
// it is the mean over the draws. Both values are 0 for configurations that the family does not cover.
func gain(ctx context.Context, have []spec.Measurement, space, wanted []spec.Config) ([]perfmodel.Gain, error) {
	of := design.NewConfigs(space, wanted)
	rows, err := rowsToFit(ctx, have, of.All)
	if err != nil || len(space) == 0 {
		return nil, err
	}
	g := newSpaceGain(rows, of)
	if len(g.Index) == 0 {
		return make([]perfmodel.Gain, len(space)), nil
	}
	if err := g.prepare(ctx, rows, of.All); err != nil {
		return nil, fmt.Errorf("rubick: %s: %w", space[0].Key(), err)
	}
	return g.Gains(len(rows), g), ctx.Err()
}

// SpacePosterior is the posterior of the step times of configurations.
type SpacePosterior struct {
	Index []int         // indices of the configurations that the family covers
	Place []int         // indices of the targets that the family covers
	Views []design.View // posterior of both; the weights add up to 1
	Half  float64       // half a 90 % interval over the posterior standard deviation
}

// PosteriorOf returns the posterior of space given the rows of have, with covariances to targets, which are
// indices into space. Rows and space share one key. Errors are those of Family.Fit. The result belongs to the
// caller.
func PosteriorOf(ctx context.Context, have []spec.Measurement, space []spec.Config, targets []int) (*SpacePosterior, error) {
	rows, err := rowsToFit(ctx, have, space)
	if err != nil {
		return nil, err
	}
	g := newSpaceGain(rows, design.NewConfigs(space, nil))
	out := &SpacePosterior{Index: g.Index}
	if len(g.Index) == 0 {
		return out, nil
	}
	g.Targets = nil
	for i, t := range targets {
		if k := slices.Index(g.Index, t); k >= 0 {
			g.Targets, out.Place = append(g.Targets, k), append(out.Place, i)
		}
	}
	if err := g.prepare(ctx, rows, space); err != nil {
		return nil, err
	}
	out.Views, out.Half = g.views, g.half[0]
	return out, nil
}

// rowsToFit returns the rows of have to fit, possibly none. It is an error if rows or space have several keys.
func rowsToFit(ctx context.Context, have []spec.Measurement, space []spec.Config) ([]row, error) {
	ms, _, _, err := Collect(ctx, perfmodel.Rows(have))
	if err != nil {
		return nil, err
	}
	for i := range space {
		if k := space[i].Key(); k != space[0].Key() {
			return nil, fmt.Errorf("rubick: the space has %s and %s, want one job type", space[0].Key(), k)
		}
	}
	if len(ms) > 0 && len(space) > 0 && ms[0].Config.Key() != space[0].Key() {
		return nil, fmt.Errorf("rubick: the rows are of %s and the space of %s, want one job type", ms[0].Config.Key(), space[0].Key())
	}
	if len(ms) > maxRows {
		ms = thin(ms, maxRows)
	}
	return rowsOf(ms), nil
}

// spaceGain computes the gains of one space.
type spaceGain struct {
	design.Space
	plain, split []configTerms // of the candidates

	shown shownRows
	half  []float64     // half a 90 % interval over the posterior standard deviation: now, after one more row, ...
	model *Model        // nil with fewer than two rows
	views []design.View // posterior of candidates and targets; the weights add up to 1
	extra []float64     // scratch space, by target
}

// newSpaceGain lists the candidates of a space in an order that does not depend on its order.
func newSpaceGain(rows []row, of design.Configs) *spaceGain {
	type candidate struct {
		index        int
		plain, split configTerms
	}
	var all []*candidate
	for i := range of.All {
		at := &of.All[i]
		if coversConfig(at, at.Key()) != nil {
			continue
		}
		c := &candidate{i, newTerms(at, false), newTerms(at, true)}
		if c.plain.finite() && c.split.finite() {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(compareTerms(&a.plain, &b.plain), compareTerms(&a.split, &b.split))
	})
	g := &spaceGain{}
	var index []int
	for _, c := range all {
		index = append(index, c.index)
		g.plain, g.split = append(g.plain, c.plain), append(g.split, c.split)
	}
	measured := make([]spec.Config, len(rows))
	for i := range rows {
		measured[i] = rows[i].Config
	}
	g.Space = design.NewSpace(of, index, measured)
	return g
}

// finite reports whether the step time at the prior is finite, with a margin for other parameters.
func (r *configTerms) finite() bool {
	mean, _ := priorOf(r)
	e := mean.natural()
	return math.Abs(math.Log(r.seconds(&e, nil))) < 2*maxLog // false for NaN
}

// compareTerms orders configurations by all values that the formula uses.
func compareTerms(a, b *configTerms) int {
	if c := slices.Compare(a.place[:], b.place[:]); c != 0 {
		return c
	}
	x, y := a.figures(), b.figures()
	return cmp.Or(slices.Compare(x[:], y[:]), cmp.Compare(a.seen, b.seen))
}

func (r *configTerms) figures() [12]float64 {
	return [...]float64{r.compute, r.intra, r.inter, r.syncIntra, r.syncInter, r.optim, r.hostStep, r.hostCopy,
		float64(r.size.devices), float64(r.size.nodes), float64(r.size.microBatch), float64(r.size.seq)}
}

// prepare fits the rows and computes the views of the candidates.
func (g *spaceGain) prepare(ctx context.Context, rows []row, space []spec.Config) error {
	all := slices.Clone(rows)
	for _, i := range g.Index {
		all = append(all, row{Config: space[i]})
	}
	readings, best, err := g.readings(ctx, rows, splittable(all))
	if err != nil {
		return err
	}
	now := halfWidthOf(0, 0)
	var fitted []configTerms
	var whiten gp.Cholesky
	if best != nil {
		now, fitted, whiten = best.half, best.terms, best.residual
		for i := range fitted {
			g.shown.add(&fitted[i])
		}
	}
	if len(rows) > 1 {
		g.model = newModel(rows, best)
	}
	g.extra = make([]float64, len(g.Targets))
	g.half = []float64{now}
	for k := range max(1, design.PlannedRows-len(rows)) {
		g.half = append(g.half, expectedHalf(g.half[k], len(rows)+k))
	}
	g.view(readings, newResiduals(g.plain, g.Targets, fitted, whiten))
	return nil
}

// readings returns the readings of pipelines with a notable probability, including split ones if both is set,
// and the posterior of the better fit, nil without rows.
func (g *spaceGain) readings(ctx context.Context, rows []row, both bool) (list []*reading, best *posterior, err error) {
	var plain, split *posterior
	against := float64(splitEvidence) // in nats
	if len(rows) > 0 {
		if plain, split, err = fitReadings(ctx, rows, both); err != nil {
			return nil, nil, err
		}
		best = plain
		if splittable(rows) {
			best = likelierReading(plain, split)
		}
		if split != nil {
			against += split.loss - plain.loss
		}
	}
	list = []*reading{newReading(g.plain, plain)}
	if both && (split != nil || len(rows) == 0) {
		list = append(list, newReading(g.split, split))
		list[1].weight = 1 / (1 + math.Exp(against))
		list[0].weight = 1 - list[1].weight
	}
	const negligible = 0.01
	return slices.DeleteFunc(list, func(r *reading) bool { return r.weight < negligible }), best, nil
}

// view computes the views of candidates: for each reading, at draws of its parameters, plus the variance
// between readings.
func (g *spaceGain) view(readings []*reading, residual *residuals) {
	draws := gainDraws
	if g.shown.rows >= rbN {
		draws = 1
	}
	total := 0.0
	for _, r := range readings {
		total += r.weight
	}
	for _, r := range readings {
		rng := rand.New(rand.NewPCG(1, 2)) // fixed, so that the same rows give the same gains
		for k := range draws {
			at := r.mode
			if k > 0 {
				at = r.draw(rng)
			}
			v := r.view(residual, at)
			v.Weight = r.weight / total / float64(draws)
			g.views = append(g.views, v)
		}
	}
	if len(readings) == 2 {
		by := make([]float64, len(g.Index))
		for c := range by {
			by[c] = readings[1].logSec(c) - readings[0].logSec(c)
		}
		for k := range g.views {
			g.views[k].AddBetween(readings[0].weight*readings[1].weight, by, g.Targets)
		}
	}
}

// logSec returns ln T of a candidate at the mode.
func (r *reading) logSec(c int) float64 {
	if r.post == nil {
		e := r.mode.natural()
		return math.Log(r.terms[c].seconds(&e, nil))
	}
	logSec, _ := r.post.predict(&r.terms[c])
	return logSec
}

// HalfWidth implements design.Model.
func (g *spaceGain) HalfWidth(c int) float64 {
	if g.model != nil {
		t := &g.plain[c]
		if g.model.post.split {
			t = &g.split[c]
		}
		_, half, _ := g.model.interval(t)
		return half
	}
	sum, extra := 0.0, g.shown.lacks(&g.plain[c]).widening()
	for _, v := range g.views {
		sum += v.Weight * math.Sqrt(g.half[0]*g.half[0]*(v.Own[c]+design.RunNoise*design.RunNoise)+extra)
	}
	return sum
}

// MeanHalf implements design.Model.
func (g *spaceGain) MeanHalf(c int) float64 {
	if c >= 0 {
		return g.meanAfter(g.views, nil, c)
	}
	g.widenings(g.shown)
	return g.mean(g.views, -1, 0)
}

// Views implements design.Model.
func (g *spaceGain) Views() []design.View { return g.views }

// ScoreAmong implements design.Model.
func (g *spaceGain) ScoreAmong(among []int) design.Score {
	pool := &spaceGain{Space: design.Space{Targets: design.Ascending(len(among))}, shown: g.shown, half: g.half, extra: make([]float64, len(among))}
	for _, i := range among {
		pool.plain = append(pool.plain, g.plain[g.Targets[i]])
	}
	return pool.meanAfter
}

// widenings sets g.extra to the squares that are added to the targets' half widths if the rows have the
// features and sizes in shown.
func (g *spaceGain) widenings(shown shownRows) {
	for i, t := range g.Targets {
		g.extra[i] = shown.lacks(&g.plain[t]).widening()
	}
}

// meanAfter returns the mean half width of the targets after measuring candidate c and those in rest. The views
// are conditioned on rest already.
func (g *spaceGain) meanAfter(views []design.View, rest []int, c int) float64 {
	shown := g.shown
	for _, r := range rest {
		shown.add(&g.plain[r])
	}
	shown.add(&g.plain[c])
	g.widenings(shown)
	return g.mean(views, c, len(rest)+1)
}

// mean returns the mean half width over targets and views after more further rows; c is the last of them.
func (g *spaceGain) mean(views []design.View, c, more int) float64 {
	sum := 0.0
	for k := range views {
		sum += views[k].Weight * views[k].Width(c, g.half[more], g.extra)
	}
	return sum / float64(len(g.Targets))
}
