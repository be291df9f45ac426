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

// candidate is a judged configuration. A search keeps many, so that everything
// but the plan is shared in search.sites.
type candidate struct {
	plan       spec.Plan
	site       int32
	fits       bool
	throughput float64 // samples/s; 0 where it does not fit and was not predicted
	quantile   float64 // samples/s at the request's risk; throughput without one
	score      float64 // under the request's objective, higher is better
	bytes      float64 // peak on one device, 0 = unknown
	budget     float64 // bytes of a device that it may need, see memory.Budget; 0 = no limit
	host       float64 // host memory of all devices together, 0 = none or unknown
}

// search judges the candidates of one request, over its numbers of devices and
// global batches, and passes them to add.
type search struct {
	ctx        context.Context
	pl         *Planner
	request    *Request         // the whole request
	add        func(*candidate) // must not keep the pointer
	keepMisses bool             // pass candidates that do not fit to add too
	fitting    bool             // nothing is to be known of candidates that do not fit
	threshold  float64          // samples/s; slower candidates may be skipped

	r         Request // for the present number of devices and batch
	limit     float64 // usable bytes of one device, 0 = unknown
	proven    bool    // every configuration of the space fits
	sites     []site
	k         candidate // the candidate being judged
	evaluated int
	short     int       // candidates that fit and miss the target
	closest   candidate // of those, the fastest
	nearest   candidate // of those that do not fit, the one needing least; not set if fitting
	missed    bool
	tight     bool      // the plan judged last did not fit, so that the next one probably does not either
	large     *tooLarge // nil until it is needed
	covered   bool      // the predictor covered some candidate
	uncovered error     // the error of the first candidate not covered
}

// newSearch returns a search under the objective of request, which is normal.
func (pl *Planner) newSearch(ctx context.Context, request *Request, add func(*candidate)) *search {
	return new(search).reset(ctx, pl, request, add)
}

// reset makes s a new search. It keeps the memory of sites and of large plans, and the last site of the same planner for
// siteOf.
func (s *search) reset(ctx context.Context, pl *Planner, request *Request, add func(*candidate)) *search {
	sites := s.sites[:0]
	if n := len(s.sites); n > 0 && s.pl == pl {
		sites = append(sites, s.sites[n-1])
	}
	*s = search{ctx: ctx, pl: pl, request: request, add: add, limit: request.Accelerator.MemBytes * (1 - pl.o.Reserve), sites: sites, large: s.large}
	if p, ok := pl.o.Space.(Proven); ok {
		s.proven = p.Proven()
	}
	return s
}

// reusable returns what another search uses again: memory, and the last site of the same planner. Searches that differ in
// the number of devices share parts of that.
func (s *search) reusable() search {
	if n := len(s.sites); n > 1 {
		s.sites[0] = s.sites[n-1]
		clear(s.sites[1:])
		s.sites = s.sites[:1]
	}
	return search{pl: s.pl, sites: s.sites, large: s.large}
}

// uniform is an optional interface of a Space with configurations that differ only
// in their plans.
type uniform interface {
	// plans returns the shared configuration and an iterator over the plans. Where
	// ok is false, Configs must be used for r.
	plans(r Request) (shared spec.Config, each planWalk, ok bool)
}

// planWalk yields plans until yield returns false. It reuses the plan between
// calls. Where prunable, which may be nil, is true of a plan, planWalk skips every
// plan that differs from it only in sequence parallelism, ZeRO stage and shard
// group, offload and recompute.
type planWalk func(prunable, yield func(*spec.Plan) bool)

// run judges the candidates of the space for r. It skips those that the predictor
// does not cover.
func (s *search) run(r Request) error {
	s.r = r
	if s.large != nil {
		s.large.next()
	}
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

// runPlans is run for the plans of one site.
func (s *search) runPlans(shared *spec.Config, each planWalk) error {
	at, err := s.siteOf(shared)
	if err != nil {
		return s.skip(err)
	}
	each(s.prunable(&s.sites[at]), func(p *spec.Plan) bool {
		if s.interrupted() {
			return false
		}
		err = s.skip(s.judge(at, p))
		return err == nil
	})
	return cmp.Or(err, s.ctx.Err())
}

// sweep runs every number of devices and global batch of the request.
func (s *search) sweep() error {
	from, to := s.request.counts()
	for n := from; n <= to; n++ {
		for _, b := range s.request.batches() {
			if err := s.run(s.request.at(n, b)); err != nil {
				return err
			}
		}
	}
	return s.checkCovered()
}

// checkCovered returns an error when the predictor covered no candidate.
func (s *search) checkCovered() error {
	if s.uncovered != nil && !s.covered && !s.missed {
		return s.uncovered
	}
	return nil
}

// interrupted counts a candidate and checks the context every 1024 of them.
func (s *search) interrupted() bool {
	s.evaluated++
	return s.evaluated%1024 == 0 && s.ctx.Err() != nil
}

// prunable returns whether a plan is below the threshold in all modes, nil where
// step times have no lower bound. Recomputation only adds time, so that the bound
// without it holds for all modes. The ZeRO stage counts, since an unstated training
// stack is another one from stage 3 on.
func (s *search) prunable(st *site) func(*spec.Plan) bool {
	if st.atLeast == nil {
		return nil
	}
	var q spec.Plan
	return func(p *spec.Plan) bool {
		if s.threshold == 0 {
			return false
		}
		q = *p
		q.Recompute = spec.RecomputeNone
		for _, q.ZeRO = range [...]int{0, 3} {
			for _, q.SequenceParallel = range [...]bool{false, true} {
				if !(q.SequenceParallel && q.TP == 1) && !s.belowThreshold(&q, st.atLeast(&q, &st.config.Shape)) {
					return false
				}
			}
		}
		return true
	}
}

// belowThreshold reports whether a step of at least that many seconds is slower
// than the threshold.
func (s *search) belowThreshold(p *spec.Plan, least float64) bool {
	return float64(p.GlobalBatch()) < s.threshold*(1-boundSlack)*least
}

// boundSlack is the relative rounding error of a lower bound.
const boundSlack = 1e-9

// judge checks memory before it predicts time, where the site allows that. Where nothing is to be known of misses it first
// skips what is slower than the threshold, since a prediction takes less time than an estimate of memory.
func (s *search) judge(at int32, p *spec.Plan) (err error) {
	st := &s.sites[at]
	if s.threshold > 0 && st.atLeast != nil && s.belowThreshold(p, st.atLeast(p, &st.config.Shape)) {
		return nil
	}
	if s.isTooLarge(st, p) {
		s.missed = true
		return nil
	}
	k := &s.k
	*k = candidate{plan: *p, site: at}
	var pred spec.Prediction
	predicted := false
	if s.fitting && st.prepared && s.threshold > 0 {
		pred, err = st.predict.Predict(k.plan, st.config.SeqLen)
		if predicted = err == nil; predicted {
			if score, _ := s.request.score(s.request.quantile(&pred), p.Devices(), p.GlobalBatch()); score < s.threshold {
				s.covered = true
				return nil
			}
		}
	}
	if s.tight && s.exceeds(st, p) {
		s.missed = true
		return nil
	}
	if st.prepared {
		st.estimate(k, s.limit)
		if s.tight = !s.fit(k, st); s.tight {
			s.miss(k)
			return nil
		}
	}
	if !predicted {
		if pred, err = st.predict.Predict(k.plan, st.config.SeqLen); err != nil {
			return err
		}
	}
	s.covered = true
	k.throughput = pred.Throughput
	if !st.prepared {
		if st.estimate(k, s.limit); pred.MemoryBytes > 0 {
			k.bytes, k.host = pred.MemoryBytes, 0 // the predictor does not say what it keeps on the host
		}
		if !s.fit(k, st) {
			s.miss(k)
			return nil
		}
	}
	var reached bool
	k.quantile = s.request.quantile(&pred)
	if k.score, reached = s.request.score(k.quantile, k.plan.Devices(), k.plan.GlobalBatch()); !reached {
		if s.short == 0 || k.quantile > s.closest.quantile {
			s.closest = *k
		}
		s.short++
		return nil
	}
	s.add(k)
	return nil
}

// fit sets and returns whether k is within device memory and, where its size is
// known, host memory.
func (s *search) fit(k *candidate, st *site) bool {
	host := s.hostLimit(&st.config.Shape, k.plan.Devices())
	k.fits = s.proven || (k.budget <= 0 || k.bytes <= k.budget) && (host <= 0 || k.host <= host)
	return k.fits
}

// hostLimit returns the bytes of host memory a job on shape may use, 0 = unknown.
func (s *search) hostLimit(shape *spec.Shape, devices int) float64 {
	if shape.HostBytes > 0 {
		return shape.HostBytes
	}
	return s.r.NodeHostBytes * float64(devices) / float64(s.r.PerNode)
}

// skip returns nil for perfmodel.ErrNotCovered and err otherwise. It keeps the first
// such error.
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

// choice returns a candidate as a Choice.
func (s *search) choice(k candidate) (Choice, error) {
	c := s.sites[k.site].config
	c.Plan = k.plan
	pred, err := s.pl.p.Predict(s.ctx, c)
	if err != nil && !(errors.Is(err, perfmodel.ErrNotCovered) && !k.fits) {
		return Choice{}, err
	}
	if st := &s.sites[k.site]; st.known && pred.MemoryBytes == 0 {
		b := st.memory.Plan(k.plan)
		b.SetMemory(&pred)
	}
	out := Choice{Config: c, Prediction: pred, Fits: k.fits}
	s.request.setCosts(&out)
	switch {
	case !k.fits:
		out.Verdict, out.Why = s.why(c, &k)
	case s.limit > 0 && pred.MemoryBytes > 0:
		out.Verdict = memory.Fits
	}
	return out, nil
}

// why returns the verdict on a configuration that does not fit and the reason, with the parts of the memory where
// the estimate has them.
func (s *search) why(c spec.Config, k *candidate) (memory.Verdict, string) {
	st := &s.sites[k.site]
	if k.budget <= 0 || k.bytes <= k.budget {
		return memory.Exceeds, fmt.Sprintf("needs %.1f GiB of host memory of %.1f GiB", k.host/memory.GiB, s.hostLimit(&c.Shape, c.Plan.Devices())/memory.GiB)
	}
	msg := memory.Misfit(k.bytes, k.budget, s.limit)
	if !st.known {
		return memory.Exceeds, msg
	}
	b := st.memory.Plan(k.plan)
	if b.Total() != k.bytes { // the predictor has its own memory model
		peak := memory.Breakdown{Overhead: k.bytes, LogSD: b.LogSD}
		return peak.Verdict(s.limit), msg
	}
	c.Accelerator.MemBytes = s.limit
	verdict, _ := st.memory.Open(&c, &b, "")
	return verdict, msg + ": " + b.String()
}
