package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Options configure a Planner. The zero value works.
type Options struct {
	// Space holds the configurations that may be proposed; nil = Enumerate{}.
	Space Space
	// Memory estimates memory where the predictor does not predict it and is no
	// memory.Predictor; nil = memory.Shipped. A Config that nothing covers
	// (perfmodel.ErrNotCovered) is taken to fit.
	Memory *memory.Calibration
	// Reserve is the share of device memory to leave free, in [0, 1). The estimate
	// already includes context and fragmentation, and memory.Budget its error.
	Reserve float64
	// CacheSize is the number of answers kept: at least that many, at most twice as
	// many. Curves and surfaces each keep 16 to 32 times as many choices. 0 = 4096,
	// about 200 MB when full.
	CacheSize int
}

// Validate reports an option out of range.
func (o Options) Validate() error {
	if !(o.Reserve >= 0 && o.Reserve < 1) {
		return fmt.Errorf("planner: reserve %g is not in [0, 1)", o.Reserve)
	}
	if o.CacheSize < 0 {
		return fmt.Errorf("planner: cache size %d is negative", o.CacheSize)
	}
	return nil
}

// Planner answers Requests with one predictor. It is safe for concurrent use and
// implements scheduler.Oracle.
type Planner struct {
	p        perfmodel.Predictor
	o        Options
	bests    *cache[requestKey, answer]
	curves   *cache[requestKey, Curve]
	surfaces *cache[surfaceKey, *Surface]
	fixed    fixedSites
}

// pointsPerChoice is the number of points of a surface in the memory of a Choice.
const pointsPerChoice = 128

// New returns a Planner over p. It panics on options that do not validate.
func New(p perfmodel.Predictor, o Options) *Planner {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	if o.Space == nil {
		o.Space = Enumerate{}
	}
	if o.Memory == nil {
		o.Memory = memory.Shipped()
	}
	size := cmp.Or(o.CacheSize, 4096)
	choices := 16 * size
	return &Planner{p: p, o: o, bests: newCache(size, weighBest),
		curves:   newCache(choices, func(_ requestKey, c Curve) int { return len(c.Points) }),
		surfaces: newCache(choices, func(_ surfaceKey, s *Surface) int { return len(s.choices) + len(s.points)/pointsPerChoice })}
}

// WithPredictor returns a Planner over p, the predictor after refitting the
// performance models of the changed keys. It keeps the cached answers about all
// other keys; without changed keys it keeps none. The receiver does not change.
func (pl *Planner) WithPredictor(p perfmodel.Predictor, changed ...spec.Key) *Planner {
	out := New(p, pl.o)
	if len(changed) == 0 {
		return out
	}
	same := func(r *Request, a *spec.Accelerator) bool {
		return !slices.Contains(changed, spec.Key{Model: r.Model.Name, Accelerator: a.Name})
	}
	out.bests.take(pl.bests, func(k requestKey, _ answer) bool { return same(&k.r, &k.r.Accelerator) })
	out.curves.take(pl.curves, func(k requestKey, _ Curve) bool { return same(&k.r, &k.r.Accelerator) })
	out.surfaces.take(pl.surfaces, func(_ surfaceKey, s *Surface) bool {
		return !slices.ContainsFunc(s.Axes.Machines, func(m Machine) bool { return !same(&s.Request, &m.Accelerator) })
	})
	return out
}

// Space returns the space that proposals come from.
func (pl *Planner) Space() Space { return pl.o.Space }

// Predict returns the prediction of the performance model, with estimated memory
// where the model predicts none.
func (pl *Planner) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	pred, err := pl.p.Predict(ctx, c)
	if err != nil || pred.MemoryBytes > 0 {
		return pred, err
	}
	if e, err := pl.Memory(c); err == nil {
		b := e.Plan(c.Plan)
		b.SetMemory(&pred)
	}
	return pred, nil
}

// Memory returns the memory estimator of c, which applies to every plan of c's
// model and machines. The error wraps perfmodel.ErrNotCovered when none covers c.
func (pl *Planner) Memory(c spec.Config) (memory.Estimator, error) {
	return memory.Of(pl.p, pl.o.Memory, c)
}

// answer is a cached result of fastest. ok is false where nothing fits.
type answer struct {
	choice Choice
	ok     bool
}

// weighBest weighs an answer of Best as 1, and more by its shapes: "1+1+1..." is long on many nodes.
func weighBest(k requestKey, a answer) int {
	const bytes = 16 << 10
	return 1 + (len(k.r.Shape.Devices)+len(a.choice.Config.Shape.Devices))/bytes
}

// Best returns the best choice that fits under the request's objective. Ties go to
// the higher throughput, then to less memory, then to the simpler plan. When
// nothing is legal, fits or reaches the target, the error wraps ErrInfeasible and
// names the nearest miss.
func (pl *Planner) Best(ctx context.Context, r Request) (Choice, error) {
	r, err := r.normal()
	if err != nil {
		return Choice{}, err
	}
	a, err := pl.best(ctx, &r, 0, pl.fastest)
	if err != nil || a.ok {
		return a.choice, err
	}
	return Choice{}, pl.infeasible(ctx, r)
}

// best is Best for a normal request without the explanation. For one number of
// devices and one batch every objective has the same answer, which solve returns.
// best may return no answer where no choice has more than minimum (Request.value).
func (pl *Planner) best(ctx context.Context, r *Request, minimum float64, solve solver) (best answer, err error) {
	var top candidate
	from, to := r.counts()
	for n := from; n <= to; n++ {
		for _, b := range r.batches() {
			low := minimum
			if r.Objective == Goodput {
				low /= r.efficiency(b)
			}
			a, err := solve(ctx, r.at(n, b), low)
			if err != nil {
				return answer{}, err
			}
			k, ok := r.scored(&a)
			if ok && (!best.ok || compareFitting(&k, &top) < 0) {
				top, best = k, a
			}
		}
		if best.ok && r.Objective == MinDevices {
			break
		}
	}
	if best.ok {
		r.setCosts(&best.choice)
	}
	return best, nil
}

// solver returns the fastest choice that fits, for a normal request of one number
// of devices and one batch. It may return no answer where none is faster than
// minimum samples/s.
type solver func(ctx context.Context, r Request, minimum float64) (answer, error)

// scored returns the candidate of an answer with its score under r's objective; ok
// is false where there is no answer or it misses the target.
func (r *Request) scored(a *answer) (k candidate, ok bool) {
	if !a.ok {
		return k, false
	}
	p := &a.choice.Config.Plan
	k = candidate{plan: *p, throughput: a.choice.Prediction.Throughput, quantile: r.quantile(&a.choice.Prediction), bytes: a.choice.Prediction.MemoryBytes}
	k.score, ok = r.score(k.quantile, p.Devices(), p.GlobalBatch())
	return k, ok
}

// fastest is a solver with a cache. It ignores the minimum.
func (pl *Planner) fastest(ctx context.Context, r Request, _ float64) (answer, error) {
	key := keyOf(r)
	if a, ok := pl.bests.get(key); ok {
		return a, nil
	}
	a, err := pl.find(ctx, r, 0)
	if err == nil {
		pl.bests.put(key, a)
	}
	return a, err
}

// find is a solver that searches.
func (pl *Planner) find(ctx context.Context, r Request, minimum float64) (a answer, err error) {
	f := finders.Get().(*finder)
	defer f.put()
	f.r, f.minimum, f.found = r, minimum, false
	f.reset(ctx, pl, &f.r, f.take)
	f.threshold, f.fitting = minimum, true
	if err = f.run(f.r); err == nil {
		err = f.checkCovered()
	}
	if err == nil && f.found {
		a.choice, err = f.choice(f.best)
	}
	if err != nil {
		return answer{}, err
	}
	a.ok = f.found
	return a, nil
}

// finder is a search for the fastest choice. Finders are pooled, since planning
// needs thousands.
type finder struct {
	search
	r       Request
	minimum float64 // samples/s an answer must exceed
	best    candidate
	found   bool
}

// put returns f to the pool.
func (f *finder) put() {
	*f = finder{search: f.reusable()}
	finders.Put(f)
}

var finders = sync.Pool{New: func() any { return new(finder) }}

func (f *finder) take(c *candidate) {
	if c.score > f.minimum && (!f.found || compareFitting(c, &f.best) < 0) {
		f.best, f.found = *c, true
		f.threshold = c.score
	}
}

// Rank returns the choices of a request, best first. A request without a legal
// candidate is an error that wraps ErrInfeasible. Candidates that do not fit are
// no error: they are listed with the reason.
func (pl *Planner) Rank(ctx context.Context, r Request) (Ranking, error) {
	r, err := r.normal()
	if err != nil {
		return Ranking{}, err
	}
	s := pl.newSearch(ctx, &r, nil)
	fitting, misses := topCandidates{s: s, top: r.Top}, topCandidates{s: s, top: cmp.Or(r.TopMisses, r.Top)}
	s.add = func(c *candidate) {
		if c.fits {
			fitting.put(c)
		} else {
			misses.put(c)
		}
	}
	s.keepMisses = true
	if err := s.sweep(); err != nil {
		return Ranking{}, err
	}
	if fitting.seen+misses.seen == 0 {
		return Ranking{}, pl.infeasible(ctx, r)
	}
	out := Ranking{Evaluated: s.evaluated, Fitting: fitting.seen, Misses: misses.seen}
	all := append(fitting.first(), misses.first()...)
	if r.Top > 0 && r.TopMisses == 0 {
		all = all[:min(r.Top, len(all))]
	}
	for _, k := range all {
		c, err := s.choice(k)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return Ranking{}, err
		}
		out.Choices = append(out.Choices, c)
	}
	return out, nil
}

// topCandidates keeps the best top of the candidates put, all where top is 0.
type topCandidates struct {
	s    *search
	top  int
	kept []candidate
	seen int
}

func (p *topCandidates) put(c *candidate) {
	p.seen++
	p.kept = append(p.kept, *c)
	if p.top > 0 && len(p.kept) >= 2*p.top+1024 {
		p.first()
	}
}

// first sorts the kept candidates and returns them.
func (p *topCandidates) first() []candidate {
	slices.SortFunc(p.kept, p.s.compare)
	if p.top > 0 {
		p.kept = p.kept[:min(p.top, len(p.kept))]
	}
	return p.kept
}

// normal checks r and returns it with its defaults filled in.
func (r Request) normal() (Request, error) {
	if r.Plan != nil {
		p := r.Plan.Normal()
		r.Plan = &p
		if r.GlobalBatch == 0 && r.MaxBatch == 0 {
			r.GlobalBatch = p.GlobalBatch()
		}
		if got := p.GlobalBatch(); got != r.GlobalBatch {
			return r, fmt.Errorf("planner: plan %s makes a global batch of %d, the request says %d", p, got, r.GlobalBatch)
		}
	}
	if r.Shape.Devices != "" {
		r.Devices = r.Shape.Total()
	} else if r.Devices == 0 && r.Plan != nil {
		r.Devices = r.Plan.Devices()
	}
	if r.PerNode == 0 {
		r.PerNode = 8
	}
	m := &r.Model
	if err := r.checkBatch(); err != nil {
		return r, err
	}
	switch {
	case r.Devices < 1 || r.Devices > maxDevices:
		return r, fmt.Errorf("planner: %d devices, want 1..%d", r.Devices, maxDevices)
	case r.PerNode < 1:
		return r, fmt.Errorf("planner: %d devices per node, want at least 1", r.PerNode)
	case !(r.NodeHostBytes >= 0):
		return r, fmt.Errorf("planner: %g bytes of host memory per node", r.NodeHostBytes)
	case r.Top < 0 || r.TopMisses < 0:
		return r, fmt.Errorf("planner: top %d and %d misses, want 0 or more", r.Top, r.TopMisses)
	case min(m.Layers, m.Hidden, m.FFN, m.Heads, m.KVHeads, m.HeadDim, m.Vocab, m.Experts, m.SeqLen, r.SeqLen) < 0:
		return r, fmt.Errorf("planner: model %s has a negative size or sequence length", m.Name)
	}
	return r, r.checkObjective()
}

// Requests are bounded so that products of degrees fit an int and divisors are
// found quickly.
const (
	maxDevices = 1 << 20
	maxBatch   = 1 << 30
)
