package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// candidate is a judged configuration, small enough to keep by the hundred
// thousand: everything but the plan is shared, in search.sites.
type candidate struct {
	plan       spec.Plan
	site       int32
	fits       bool
	throughput float64 // samples/s; 0 when it does not fit and was not predicted
	promised   float64 // samples/s at the request's risk; throughput without one
	worth      float64 // under the request's objective, more being better
	bytes      float64 // peak on one device, 0 = unknown
	host       float64 // host memory of all devices together, 0 = none or unknown
}

// site is what the candidates of one (model, machines, shape) share.
type site struct {
	config   spec.Config // Plan is zero
	predict  func(spec.Plan) (spec.Prediction, error)
	atLeast  func(*spec.Plan) float64 // seconds of a step, nil where nothing is known
	prepared bool                     // predictions say nothing of memory, or what memory does
	memory   memory.Estimator
	known    bool    // memory covers the model
	budget   float64 // the most bytes that fit, see memory.Budget; 0 = no limit
}

// estimate fills in the memory of k, 0 where nobody knows.
func (st *site) estimate(k *candidate) {
	if st.known {
		b := st.memory.Plan(k.plan)
		k.bytes, k.host = b.Total(), b.HostBytes*float64(k.plan.Devices())
	}
}

// search judges the candidates of requests that differ in devices and global
// batch, and hands them to add.
type search struct {
	ctx        context.Context
	pl         *Planner
	ask        *Request         // whose objective counts
	add        func(*candidate) // must not keep what it is given
	keepMisses bool             // hand over candidates that do not fit too
	bar        float64          // samples/s below which candidates are of no interest

	r         Request // the present one
	limit     float64 // usable bytes of one device, 0 = unknown
	proven    bool    // the space's configurations have run: they fit
	sites     []site
	k         candidate // in work
	evaluated int
	short     int       // candidates that fit and miss the target
	closest   candidate // of those, the fastest
	nearest   candidate // of those that do not fit, the one needing least
	missed    bool
	covered   bool  // the predictor had an opinion on some candidate
	uncovered error // on the first it had none
}

// newSearch returns a search for the objective of ask, a normal request.
func (pl *Planner) newSearch(ctx context.Context, ask *Request, add func(*candidate)) *search {
	return new(search).reset(ctx, pl, ask, add)
}

// reset makes s a new search, in the memory it has.
func (s *search) reset(ctx context.Context, pl *Planner, ask *Request, add func(*candidate)) *search {
	*s = search{ctx: ctx, pl: pl, ask: ask, add: add, limit: ask.Accelerator.MemBytes * (1 - pl.o.Reserve), sites: s.sites[:0]}
	if p, ok := pl.o.Space.(Proven); ok {
		s.proven = p.Proven()
	}
	return s
}

// uniform is an optional interface of a Space whose configurations for a request
// differ in their plans alone.
type uniform interface {
	// plans returns what they share and how to go through their plans. ok is false
	// when r is to be asked of Configs.
	plans(r Request) (shared spec.Config, each walk, ok bool)
}

// walk yields plans, which are reused between calls, until yield returns false.
// Where hopeless, which may be nil, says so of a plan it leaves out those that
// differ from it in sequence parallelism, ZeRO stage and group, offload and
// recompute, whatever the plan's own are.
type walk func(hopeless, yield func(*spec.Plan) bool)

// run goes through the space for r. Candidates the predictor does not cover are
// left out.
func (s *search) run(r Request) error {
	s.r = r
	if u, ok := s.pl.o.Space.(uniform); ok {
		if shared, each, ok := u.plans(r); ok {
			return s.runPlans(&shared, each)
		}
	}
	for c := range s.pl.o.Space.Configs(s.ctx, r) {
		if s.interrupted() {
			break
		}
		at, err := s.siteOf(&c)
		if err == nil {
			err = s.judge(at, &c.Plan)
		}
		if err = s.skip(err); err != nil {
			return err
		}
	}
	return s.ctx.Err()
}

// runPlans is run for plans on one site.
func (s *search) runPlans(shared *spec.Config, each walk) error {
	at, err := s.siteOf(shared)
	if err != nil {
		return s.skip(err)
	}
	each(s.hopeless(&s.sites[at]), func(p *spec.Plan) bool {
		if s.interrupted() {
			return false
		}
		err = s.skip(s.judge(at, p))
		return err == nil
	})
	return cmp.Or(err, s.ctx.Err())
}

// sweep runs every number of devices and batch the normal request asks about.
func (s *search) sweep() error {
	from, to := s.ask.counts()
	for n := from; n <= to; n++ {
		for _, b := range s.ask.batches() {
			if err := s.run(s.ask.at(n, b)); err != nil {
				return err
			}
		}
	}
	return s.opinion()
}

// opinion is an error when the predictor covered none of the candidates.
func (s *search) opinion() error {
	if s.uncovered != nil && !s.covered && !s.missed {
		return s.uncovered
	}
	return nil
}

// interrupted counts a candidate and looks, now and then, whether to go on.
func (s *search) interrupted() bool {
	s.evaluated++
	return s.evaluated%1024 == 0 && s.ctx.Err() != nil
}

// hopeless returns a function that tells whether no modes make a plan worth
// judging, nil where nothing is known. Doing things again only takes time.
func (s *search) hopeless(st *site) func(*spec.Plan) bool {
	if st.atLeast == nil {
		return nil
	}
	var q spec.Plan
	return func(p *spec.Plan) bool {
		if s.bar == 0 {
			return false
		}
		q = *p
		q.Recompute, q.SequenceParallel = spec.RecomputeNone, false
		least := st.atLeast(&q)
		if q.TP > 1 {
			q.SequenceParallel = true
			least = min(least, st.atLeast(&q))
		}
		return s.tooSlow(&q, least)
	}
}

// tooSlow reports whether a step of at least so many seconds is slower than the
// bar.
func (s *search) tooSlow(p *spec.Plan, least float64) bool {
	return float64(p.GlobalBatch()) < s.bar*(1-boundSlack)*least
}

// boundSlack is by how much more rounding may make a bound, relative to it.
const boundSlack = 1e-9

// judge looks at memory first where it need not ask for a prediction: what
// does not fit needs no time.
func (s *search) judge(at int32, p *spec.Plan) error {
	st := &s.sites[at]
	if s.bar > 0 && st.atLeast != nil && s.tooSlow(p, st.atLeast(p)) {
		return nil
	}
	k := &s.k
	*k = candidate{plan: *p, site: at}
	if st.prepared {
		if st.estimate(k); !s.fit(k, st) {
			s.miss(k)
			return nil
		}
	}
	pred, err := st.predict(k.plan)
	if err != nil {
		return err
	}
	s.covered = true
	k.throughput = pred.Throughput
	if !st.prepared {
		if k.bytes = pred.MemoryBytes; k.bytes == 0 {
			st.estimate(k)
		}
		if !s.fit(k, st) {
			s.miss(k)
			return nil
		}
	}
	var reached bool
	k.promised = s.ask.promised(&pred)
	if k.worth, reached = s.ask.worth(k.promised, k.plan.Devices(), k.plan.GlobalBatch()); !reached {
		if s.short == 0 || k.promised > s.closest.promised {
			s.closest = *k
		}
		s.short++
		return nil
	}
	s.add(k)
	return nil
}

// fit reports whether k is within device memory and, where it is known how much
// there is, host memory.
func (s *search) fit(k *candidate, st *site) bool {
	host := s.hostLimit(&st.config.Shape, k.plan.Devices())
	k.fits = s.proven || (st.budget <= 0 || k.bytes <= st.budget) && (host <= 0 || k.host <= host)
	return k.fits
}

// hostLimit returns the host memory a job on shape may use, 0 = not known.
func (s *search) hostLimit(shape *spec.Shape, devices int) float64 {
	if shape.HostBytes > 0 {
		return shape.HostBytes
	}
	return s.r.NodeHostBytes * float64(devices) / float64(s.r.PerNode)
}

// skip drops err when it says that the predictor does not cover a candidate.
func (s *search) skip(err error) error {
	if err == nil || !errors.Is(err, perfmodel.ErrNotCovered) {
		return err
	}
	if s.uncovered == nil {
		s.uncovered = err
	}
	return nil
}

func (s *search) miss(k *candidate) {
	if !s.missed || k.bytes < s.nearest.bytes {
		s.nearest, s.missed = *k, true
	}
	if s.keepMisses {
		s.add(k)
	}
}

// siteOf returns the site of c, the last one as long as nothing but the plan
// changes.
func (s *search) siteOf(c *spec.Config) (int32, error) {
	fixed := *c
	fixed.Plan = spec.Plan{}
	if n := len(s.sites); n > 0 && s.sites[n-1].config == fixed {
		return int32(n - 1), nil
	}
	st := site{config: fixed}
	if err := s.measure(&st); err != nil {
		return 0, err
	}
	var err error
	if st.predict, st.prepared, err = s.predictor(fixed); err != nil {
		return 0, err
	}
	if b, ok := s.pl.p.(perfmodel.Bounder); ok {
		if st.atLeast, err = b.StepAtLeast(fixed); err != nil {
			return 0, err
		}
	}
	s.sites = append(s.sites, st)
	return int32(len(s.sites) - 1), nil
}

func (s *search) predictor(c spec.Config) (f func(spec.Plan) (spec.Prediction, error), prepared bool, err error) {
	if p, ok := s.pl.p.(perfmodel.Preparer); ok {
		f, err = p.Prepare(c)
		return f, true, err
	}
	return s.predictEach(&c), false, nil
}

// predictEach asks for one configuration at a time.
func (s *search) predictEach(c *spec.Config) func(spec.Plan) (spec.Prediction, error) {
	full := *c
	return func(p spec.Plan) (spec.Prediction, error) {
		full.Plan = p
		return s.pl.p.Predict(s.ctx, full)
	}
}

// measure finds what st's memory is estimated with, and the most that fits. A
// prediction that says how much it takes is taken to be as sure.
func (s *search) measure(st *site) error {
	var err error
	st.memory, err = s.pl.Memory(st.config)
	switch {
	case err == nil:
		st.known, st.budget = true, st.memory.Budget(s.limit)
	case errors.Is(err, perfmodel.ErrNotCovered):
		st.budget = memory.Budget(s.limit, 0)
	default:
		return err
	}
	return nil
}

// choice writes a candidate out in full.
func (s *search) choice(k candidate) (Choice, error) {
	c := s.sites[k.site].config
	c.Plan = k.plan
	pred, err := s.pl.p.Predict(s.ctx, c)
	if err != nil && !(errors.Is(err, perfmodel.ErrNotCovered) && !k.fits) {
		return Choice{}, err
	}
	if pred.MemoryBytes == 0 {
		pred.MemoryBytes = k.bytes
	}
	out := Choice{Config: c, Prediction: pred, Fits: k.fits}
	s.ask.account(&out)
	if !k.fits {
		out.Why = s.why(c, &k)
	}
	return out, nil
}

// why says what a configuration needs, and of what if the estimate explains
// the figure.
func (s *search) why(c spec.Config, k *candidate) string {
	st := &s.sites[k.site]
	if st.budget <= 0 || k.bytes <= st.budget {
		return fmt.Sprintf("needs %.1f GiB of host memory of %.1f GiB", k.host/memory.GiB, s.hostLimit(&c.Shape, c.Plan.Devices())/memory.GiB)
	}
	msg := memory.Misfit(k.bytes, st.budget, s.limit)
	if !st.known {
		return msg
	}
	if b := st.memory.Plan(k.plan); b.Total() == k.bytes {
		msg += ": " + b.String()
	}
	return msg
}

// compare orders candidates as Ranking says.
func (s *search) compare(a, b candidate) int {
	switch {
	case a.fits != b.fits:
		if a.fits {
			return -1
		}
		return 1
	case a.fits:
		if c := compareFitting(&a, &b); c != 0 {
			return c
		}
	default:
		if c := cmp.Or(cmp.Compare(a.bytes, b.bytes), comparePlans(&a.plan, &b.plan)); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.site, b.site)
}

// compareFitting orders by worth, then promised throughput, most first, then by
// memory, least first, then by plan.
func compareFitting(a, b *candidate) int {
	if c := cmp.Compare(b.worth, a.worth); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(b.promised, a.promised), cmp.Compare(a.bytes, b.bytes), comparePlans(&a.plan, &b.plan), cmp.Compare(a.site, b.site))
}

// comparePlans is a total order of normal plans that prefers what is simpler:
// fewer splits first, then fewer modes.
func comparePlans(a, b *spec.Plan) int {
	return cmp.Or(
		cmp.Compare(a.PP, b.PP), cmp.Compare(a.TP, b.TP), cmp.Compare(a.CP, b.CP), cmp.Compare(a.EP, b.EP),
		cmp.Compare(a.DP, b.DP), cmp.Compare(a.VirtualStages, b.VirtualStages),
		cmp.Compare(a.Schedule, b.Schedule), cmp.Compare(a.ZeRO, b.ZeRO), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Offload, b.Offload), cmp.Compare(a.Recompute, b.Recompute),
		compareBool(a.SequenceParallel, b.SequenceParallel),
		cmp.Compare(a.ParamServers, b.ParamServers), compareBool(a.Async, b.Async),
		cmp.Compare(a.MicroBatch, b.MicroBatch), cmp.Compare(a.AccumSteps, b.AccumSteps),
		cmp.Compare(a.Precision, b.Precision))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
