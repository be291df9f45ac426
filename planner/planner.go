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
	// Space is what may be proposed; nil is Enumerate{}.
	Space Space
	// Memory estimates memory where the predictor neither is a memory.Predictor
	// nor says how much it takes; nil is memory.Shipped. A Config that nothing
	// covers (perfmodel.ErrNotCovered) is taken to fit.
	Memory *memory.Calibration
	// Reserve is the share of device memory to leave free, in [0, 1). The
	// estimate counts context and fragmentation already, and the rule of what
	// fits (memory.Budget) how sure it is.
	Reserve float64
	// CacheSize is how many answers are kept: at least that many, at most twice as
	// many, and besides 16 to 32 times as many choices of curves, and of surfaces.
	// 0 = 4096, some 200 MB when full.
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

// Planner answers Requests with the predictor it was made with. It is safe for
// concurrent use, and is a scheduler.Oracle.
type Planner struct {
	p        perfmodel.Predictor
	o        Options
	bests    *cache[requestKey, answer]
	curves   *cache[requestKey, Curve]
	surfaces *cache[surfaceKey, *Surface]
}

// pointsPerChoice is how many points of a surface take the memory of a Choice.
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
	return &Planner{p: p, o: o, bests: newCache[requestKey](size, func(answer) int { return 1 }),
		curves:   newCache[requestKey](choices, func(c Curve) int { return len(c.Points) }),
		surfaces: newCache[surfaceKey](choices, func(s *Surface) int { return len(s.choices) + len(s.points)/pointsPerChoice })}
}

// With returns a Planner over p, the predictor after a performance model was
// fitted again. It keeps the answers found so far but those about the changed
// keys; without any it keeps none. The receiver goes on as it was.
func (pl *Planner) With(p perfmodel.Predictor, changed ...spec.Key) *Planner {
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

// Space returns the space proposals come from.
func (pl *Planner) Space() Space { return pl.o.Space }

// Predict returns what the performance model says of c, with memory as
// estimated where the model is silent.
func (pl *Planner) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	pred, err := pl.p.Predict(ctx, c)
	if err != nil || pred.MemoryBytes > 0 {
		return pred, err
	}
	if e, err := pl.Memory(c); err == nil {
		pred.MemoryBytes = e.Bytes(c.Plan)
	}
	return pred, nil
}

// Memory returns what the planner estimates memory with, of everything in c but
// its plan. The error wraps perfmodel.ErrNotCovered when nothing covers it.
func (pl *Planner) Memory(c spec.Config) (memory.Estimator, error) {
	return memory.Of(pl.p, pl.o.Memory, c)
}

// answer is a cached result of fastest: what does not fit now does not fit
// later.
type answer struct {
	choice Choice
	ok     bool
}

// Best returns the best choice that fits under the request's objective; ties go
// to the higher throughput, the smaller need of memory, then to the simpler plan.
// When nothing fits, reaches the target or is legal, the error wraps
// ErrInfeasible and names the nearest miss.
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

// best is Best for a normal request, silent about why there is no answer. For
// one number of devices and one batch every objective has the same answer, which
// ask gives. What is worth no more than bar (see Request.value) need be no answer.
func (pl *Planner) best(ctx context.Context, r *Request, bar float64, ask asker) (best answer, err error) {
	var top candidate
	from, to := r.counts()
	for n := from; n <= to; n++ {
		for _, b := range r.batches() {
			low := bar
			if r.Objective == Goodput {
				low /= r.efficiency(b)
			}
			a, err := ask(ctx, r.at(n, b), low)
			if err != nil {
				return answer{}, err
			}
			k, ok := r.weigh(&a)
			if ok && (!best.ok || compareFitting(&k, &top) < 0) {
				top, best = k, a
			}
		}
		if best.ok && r.Objective == MinDevices {
			break
		}
	}
	if best.ok {
		r.account(&best.choice)
	}
	return best, nil
}

// asker answers a normal request of one number of devices and one batch with the
// fastest choice that fits. There may be no answer where none makes more than bar
// samples/s.
type asker func(ctx context.Context, r Request, bar float64) (answer, error)

// weigh returns what orders a choice among others under r's objective.
func (r *Request) weigh(a *answer) (k candidate, ok bool) {
	if !a.ok {
		return k, false
	}
	p := &a.choice.Config.Plan
	k = candidate{plan: *p, throughput: a.choice.Prediction.Throughput, promised: r.promised(&a.choice.Prediction), bytes: a.choice.Prediction.MemoryBytes}
	k.worth, ok = r.worth(k.promised, p.Devices(), p.GlobalBatch())
	return k, ok
}

// fastest is an asker that remembers, and so has an answer whatever the bar.
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

// find is an asker that searches.
func (pl *Planner) find(ctx context.Context, r Request, bar float64) (a answer, err error) {
	f := finders.Get().(*finder)
	defer f.put()
	f.r, f.floor, f.found = r, bar, false
	f.reset(ctx, pl, &f.r, f.take)
	f.bar = bar
	if err = f.run(f.r); err == nil {
		err = f.opinion()
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

// finder is a search for the fastest. They are used again: planning asks for
// thousands.
type finder struct {
	search
	r     Request
	floor float64 // samples/s an answer must exceed
	best  candidate
	found bool
}

// put keeps f for the next search, and nothing it was about.
func (f *finder) put() {
	clear(f.sites)
	*f = finder{search: search{sites: f.sites[:0]}}
	finders.Put(f)
}

var finders = sync.Pool{New: func() any { return new(finder) }}

func (f *finder) take(c *candidate) {
	if c.worth > f.floor && (!f.found || compareFitting(c, &f.best) < 0) {
		f.best, f.found = *c, true
		f.bar = c.worth
	}
}

// Rank returns the choices of a request, best first. A request without any
// legal candidate is an error that wraps ErrInfeasible; one whose candidates
// do not fit is not: they are listed with the reason.
func (pl *Planner) Rank(ctx context.Context, r Request) (Ranking, error) {
	r, err := r.normal()
	if err != nil {
		return Ranking{}, err
	}
	s := pl.newSearch(ctx, &r, nil)
	fitting, misses := podium{s: s, top: r.Top}, podium{s: s, top: cmp.Or(r.TopMisses, r.Top)}
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

// podium keeps the first top of all candidates put, all of them where that is 0.
type podium struct {
	s    *search
	top  int
	kept []candidate
	seen int
}

func (p *podium) put(c *candidate) {
	p.seen++
	p.kept = append(p.kept, *c)
	if p.top > 0 && len(p.kept) >= 2*p.top+1024 {
		p.first()
	}
}

// first puts what is kept in order and returns it.
func (p *podium) first() []candidate {
	slices.SortFunc(p.kept, p.s.compare)
	if p.top > 0 {
		p.kept = p.kept[:min(p.top, len(p.kept))]
	}
	return p.kept
}

// normal checks r and writes its defaults out.
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

// A request is bounded so that products of degrees stay in an int and divisors
// are found at once.
const (
	maxDevices = 1 << 20
	maxBatch   = 1 << 30
)
