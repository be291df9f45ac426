package family

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

const (
	// gainDraws is how many draws of the parameters a gain is averaged over,
	// for each reading of pipelines, while rows are fewer than parameters;
	// later the mode stands for all.
	gainDraws = 16
	// gainPlanned is how many first rows are planned as a set. The best single
	// row lies amid the space, the best few lie around it, and a set that grew
	// from the single one stays worse. Chosen in view of Rubick's traces: after
	// two to eight rows the error there, geometric mean over job types, is
	// 6.8 % with sets of 1, 7.0 % of 2, 6.9 % of 3, 5.8 % of 4, 6.2 % of 5 and
	// 6.6 % of 6, and 8.1 % in random order. As few because a set cannot heed
	// what its own rows say.
	gainPlanned = 4
	// gainPool bounds the candidates of that plan; more are thinned, evenly.
	gainPool = 96
	// gainPairs bounds candidates times targets, down to leastTargets of them:
	// the cost of a large space.
	gainPairs    = 80_000
	leastTargets = 40
	// beatenShare is the share of the best planned row's fall that the falls of
	// rows not planned are capped at, so that whoever takes the greatest keeps
	// to the plan.
	beatenShare = 0.9
)

// gainRubick works out what each configuration of space would teach: how far
// measuring it is expected to narrow the intervals that a fit gives over the
// space, what they are widened by for features and sizes not seen included.
//
// The formula is linearised at draws from the posterior, so that a Fall depends
// on what was measured and not on what will be. While it is not settled how
// pipelines are fed (see fitRubickBest), that is one more unknown: the readings
// are weighed by how well they fit, and what lies between them counts as
// variance. Repeats make one row at their median, so a repeat is expected to
// teach nothing.
//
// The first gainPlanned rows are planned as a set, by exchange: the Falls of
// configurations outside of the best set are capped. HalfWidth is that of the
// fitted model's predictions; under two rows, when there is none, the mean over
// the draws. Configurations that the family does not cover have no interval and
// teach nothing: both figures are 0.
func gainRubick(ctx context.Context, have []spec.Measurement, space []spec.Config) ([]perfmodel.Gain, error) {
	out := make([]perfmodel.Gain, len(space))
	rows, err := gainRows(ctx, have, space)
	if err != nil || len(space) == 0 {
		return out, err
	}
	g := newRubickGain(rows, space)
	if len(g.candidates) == 0 {
		return out, nil
	}
	if err := g.learn(rows, space); err != nil {
		return nil, fmt.Errorf("rubick: %s: %w", space[0].Key(), err)
	}
	falls := g.falls()
	if g.shown.rows < gainPlanned {
		keepTo(g.plan(gainPlanned-g.shown.rows), falls)
	}
	for c, i := range g.candidates {
		out[i] = perfmodel.Gain{HalfWidth: g.halfWidth(c), Fall: falls[c]}
	}
	return out, ctx.Err()
}

// gainRows returns the rows of have to fit, maybe none, and an error if they or
// space are of several keys.
func gainRows(ctx context.Context, have []spec.Measurement, space []spec.Config) ([]rubickRow, error) {
	ms, _, _, err := collectRubick(ctx, perfmodel.Rows(have))
	if err != nil {
		return nil, err
	}
	for i := range space {
		if k := space[i].Key(); k != space[0].Key() {
			return nil, fmt.Errorf("rubick: a space of %s and of %s, want one job type", space[0].Key(), k)
		}
	}
	if len(ms) > 0 && len(space) > 0 && ms[0].Config.Key() != space[0].Key() {
		return nil, fmt.Errorf("rubick: rows of %s, a space of %s: want one job type", ms[0].Config.Key(), space[0].Key())
	}
	if len(ms) > rubickMaxRows {
		ms = thin(ms, rubickMaxRows)
	}
	return rubickRows(ms), nil
}

// rubickGain is the working out of one space's gains.
type rubickGain struct {
	candidates   []int // indices into space of what is covered
	plain, split []rubickTerms
	measured     []bool
	targets      []int // candidates whose intervals count

	shown rubickShown
	half  []float64    // half a 90 % interval in believed standard deviations: now, after one row more, ...
	model *rubickModel // nil under two rows
	views []rubickView // of candidates and targets; their weights add up to 1
}

// newRubickGain lists the candidates of space in an order that does not depend
// on space's.
func newRubickGain(rows []rubickRow, space []spec.Config) *rubickGain {
	type candidate struct {
		index        int
		plain, split rubickTerms
	}
	var all []*candidate
	for i := range space {
		if rubickCovers(&space[i], space[i].Key()) != nil {
			continue
		}
		c := &candidate{i, newRubickTerms(&space[i], false), newRubickTerms(&space[i], true)}
		if c.plain.finite() && c.split.finite() {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(compareRubickTerms(&a.plain, &b.plain), compareRubickTerms(&a.split, &b.split))
	})
	done := map[spec.Config]bool{}
	for i := range rows {
		done[asRun(rows[i].Config)] = true
	}
	g := &rubickGain{}
	for _, c := range all {
		g.candidates = append(g.candidates, c.index)
		g.plain, g.split = append(g.plain, c.plain), append(g.split, c.split)
		g.measured = append(g.measured, done[asRun(space[c.index])])
	}
	g.targets = ascending(len(all))
	if most := min(maxPool, max(gainPairs/max(len(all), 1), leastTargets)); len(all) > most {
		g.targets = spread(g.targets, most)
	}
	return g
}

// asRun returns c with defaults written out, so that repeats are equal.
func asRun(c spec.Config) spec.Config {
	c.SeqLen, c.Plan = c.Seq(), c.Plan.Normal()
	return c
}

// finite reports whether the step time, as believed before any measurement, is
// one that a machine could take, with room for any parameters.
func (r *rubickTerms) finite() bool {
	mean, _ := rubickBelief(r)
	e := mean.natural()
	return math.Abs(math.Log(r.seconds(&e, nil))) < 2*rubickMaxLog // not NaN
}

// compareRubickTerms orders configurations by all the family knows of them.
func compareRubickTerms(a, b *rubickTerms) int {
	if c := slices.Compare(a.place[:], b.place[:]); c != 0 {
		return c
	}
	x, y := a.figures(), b.figures()
	return cmp.Or(slices.Compare(x[:], y[:]), cmp.Compare(a.seen, b.seen))
}

func (r *rubickTerms) figures() [12]float64 {
	return [...]float64{r.compute, r.intra, r.inter, r.syncIntra, r.syncInter, r.optim, r.hostStep, r.hostCopy,
		float64(r.size.devices), float64(r.size.nodes), float64(r.size.microBatch), float64(r.size.seq)}
}

// learn fits the rows and sets what is believed of the candidates.
func (g *rubickGain) learn(rows []rubickRow, space []spec.Config) error {
	all := slices.Clone(rows)
	for _, i := range g.candidates {
		all = append(all, rubickRow{Config: space[i]})
	}
	readings, best, err := g.read(rows, splittable(all))
	if err != nil {
		return err
	}
	now := rubickHalf(0, 0)
	var fitted []rubickTerms
	var whiten cholesky
	if best != nil {
		now, fitted, whiten = best.half, best.terms, best.residual
		for i := range fitted {
			g.shown.add(&fitted[i])
		}
	}
	if len(rows) > 1 {
		g.model = newRubickModel(rows, best)
	}
	g.half = []float64{now}
	for k := range max(1, gainPlanned-len(rows)) {
		g.half = append(g.half, expectedHalf(g.half[k], len(rows)+k))
	}
	g.look(readings, newRubickResidual(g.plain, g.targets, fitted, whiten))
	return nil
}

// read returns the readings of pipelines worth a thought, split ones among them
// if asked, and the posterior a fit would end with, nil without rows.
func (g *rubickGain) read(rows []rubickRow, both bool) (readings []*rubickReading, best *rubickPosterior, err error) {
	var plain, split *rubickPosterior
	against := float64(splitEvidence) // in nats
	if len(rows) > 0 {
		if plain, split, err = fitRubickReadings(rows, both); err != nil {
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
	readings = []*rubickReading{newRubickReading(g.plain, plain)}
	if both && (split != nil || len(rows) == 0) {
		readings = append(readings, newRubickReading(g.split, split))
		readings[1].weight = 1 / (1 + math.Exp(against))
		readings[0].weight = 1 - readings[1].weight
	}
	const negligible = 0.01
	return slices.DeleteFunc(readings, func(r *rubickReading) bool { return r.weight < negligible }), best, nil
}

// look sets the views of candidates: each reading's at draws of its
// parameters, with the variance that lies between readings.
func (g *rubickGain) look(readings []*rubickReading, residual *rubickResidual) {
	draws := gainDraws
	if g.shown.rows >= rbN {
		draws = 1
	}
	total := 0.0
	for _, r := range readings {
		total += r.weight
	}
	for _, r := range readings {
		rng := rand.New(rand.NewPCG(1, 2)) // fixed: the same rows, the same gains
		for k := range draws {
			at := r.mode
			if k > 0 {
				at = r.draw(rng)
			}
			v := r.view(residual, at)
			v.weight = r.weight / total / float64(draws)
			g.views = append(g.views, v)
		}
	}
	if len(readings) == 2 {
		by := make([]float64, len(g.candidates))
		for c := range by {
			by[c] = readings[1].logSec(c) - readings[0].logSec(c)
		}
		for k := range g.views {
			g.views[k].addBetween(readings[0].weight*readings[1].weight, by, g.targets)
		}
	}
}

// logSec returns ln T of a candidate at the mode.
func (r *rubickReading) logSec(c int) float64 {
	if r.post == nil {
		e := r.mode.natural()
		return math.Log(r.terms[c].seconds(&e, nil))
	}
	logSec, _ := r.post.predict(&r.terms[c])
	return logSec
}

// halfWidth returns half the width of the present interval of a candidate.
func (g *rubickGain) halfWidth(c int) float64 {
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
		sum += v.weight * math.Sqrt(g.half[0]*g.half[0]*(v.own[c]+rubickNoise*rubickNoise)+extra)
	}
	return sum
}

// falls returns how far the mean half width of the targets is expected to fall
// with one row more, for each candidate.
func (g *rubickGain) falls() []float64 {
	out, extra := make([]float64, len(g.candidates)), make([]float64, len(g.targets))
	g.widenings(g.shown, extra)
	before := g.mean(g.views, -1, 0, extra)
	for c := range out {
		if !g.measured[c] {
			out[c] = max(before-g.meanAfter(g.views, nil, c, extra), 0)
		}
	}
	return out
}

// widenings sets extra to the squares added to the targets' half widths when
// rows have shown so much.
func (g *rubickGain) widenings(shown rubickShown, extra []float64) {
	for i, t := range g.targets {
		extra[i] = shown.lacks(&g.plain[t]).widening()
	}
}

// meanAfter returns the mean half width of the targets once candidate c is
// measured, after those in rest, which the views are conditioned on. extra is
// scratch.
func (g *rubickGain) meanAfter(views []rubickView, rest []int, c int, extra []float64) float64 {
	shown := g.shown
	for _, r := range rest {
		shown.add(&g.plain[r])
	}
	shown.add(&g.plain[c])
	g.widenings(shown, extra)
	return g.mean(views, c, len(rest)+1, extra)
}

// mean returns the mean half width over targets and views after so many rows
// more, c the last of them.
func (g *rubickGain) mean(views []rubickView, c, more int, extra []float64) float64 {
	sum := 0.0
	for k := range views {
		sum += views[k].weight * views[k].width(c, g.half[more], extra)
	}
	return sum / float64(len(g.targets))
}

// keepTo lowers the falls of candidates outside of plan.
func keepTo(plan []int, falls []float64) {
	best := 0.0
	for _, c := range plan {
		best = max(best, falls[c])
	}
	for c := range falls {
		if !slices.Contains(plan, c) {
			falls[c] = min(falls[c], beatenShare*best)
		}
	}
}

// plan returns the n targets, fewer if that many are not left, that are best
// measured together.
func (g *rubickGain) plan(n int) []int {
	return planned(g.views, g.targets, g.measured, n, func(among []int) setScore {
		pool := &rubickGain{targets: ascending(len(among)), shown: g.shown, half: g.half}
		for _, i := range among {
			pool.plain = append(pool.plain, g.plain[g.targets[i]])
		}
		extra := make([]float64, len(among))
		return func(views []rubickView, rest []int, c int) float64 { return pool.meanAfter(views, rest, c, extra) }
	})
}

// planned returns the n of targets, fewer if that many are not left, that are
// best measured together: by exchange, among at most gainPool of them. score is
// asked for the design's over some of the targets, by their places in the list.
func planned(views []rubickView, targets []int, measured []bool, n int, score func(among []int) setScore) []int {
	among := ascending(len(targets))
	if len(among) > gainPool {
		among = spread(among, gainPool)
	}
	d := &design{views: make([]rubickView, len(views)), score: score(among)}
	for k := range views {
		d.views[k] = views[k].among(among, targets)
	}
	d.taken = func(c int) bool { return measured[targets[among[c]]] }
	free := 0
	for c := range among {
		if !d.taken(c) {
			free++
		}
	}
	d.grow(min(n, free))
	d.improve()
	out := make([]int, len(d.chosen))
	for i, c := range d.chosen {
		out[i] = targets[among[c]]
	}
	return out
}
