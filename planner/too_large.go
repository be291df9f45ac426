package planner

import (
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// tooLarge keeps which plans of one site and global batch are known not to fit, so that those that need at least as much
// memory are skipped without an estimate. Old plans make room for new ones with the same hash.
type tooLarge struct {
	asked  int // number of the present site and global batch
	states [256]sizeBound
	whole  [1024]sizeBound
}

// sizeBound says whether plans that have the fields of plan are too large.
type sizeBound struct {
	asked  int
	plan   spec.Plan
	from   int // the smallest micro-batch of these plans
	misses bool
}

// next forgets all plans.
func (t *tooLarge) next() { t.asked++ }

// byStates returns the bound on states that plans share if they differ only in micro-batch, sequence parallelism
// and recomputation. known is false where there is none yet.
func (t *tooLarge) byStates(p *spec.Plan) (v *sizeBound, known bool) {
	q := *p
	q.MicroBatch, q.AccumSteps, q.SequenceParallel, q.Recompute = 0, 0, false, ""
	return t.kept(t.states[:], &q)
}

// byBatch returns the bound on plans of one batch that differ only in micro-batch.
func (t *tooLarge) byBatch(p *spec.Plan) *sizeBound {
	q := *p
	q.MicroBatch, q.AccumSteps = 0, p.MicroBatch*p.AccumSteps
	v, _ := t.kept(t.whole[:], &q)
	return v
}

// kept returns the bound kept on plans with the fields of p, a new one where known is false.
func (t *tooLarge) kept(all []sizeBound, p *spec.Plan) (v *sizeBound, known bool) {
	recompute := 0
	if p.Recompute != "" {
		recompute = int(p.Recompute[0])
	}
	hash := uint(0)
	for _, x := range [...]int{p.EP, p.VirtualStages, p.ZeRO, p.Shard, len(p.Offload), recompute} {
		hash = hash*31 + uint(x)
	}
	if p.SequenceParallel {
		hash += 512
	}
	v = &all[hash%uint(len(all))]
	if v.asked == t.asked && v.plan == *p {
		return v, true
	}
	*v = sizeBound{asked: t.asked, plan: *p}
	return v, false
}

// skipsLarge reports whether plans that do not fit are skipped: nothing else is to be known of them.
func (s *search) skipsLarge(st *site) bool { return s.fitting && st.prepared && st.known && !s.proven }

// isTooLarge reports whether p is known not to fit.
func (s *search) isTooLarge(st *site, p *spec.Plan) bool {
	if !s.skipsLarge(st) {
		return false
	}
	if s.large == nil {
		s.large = new(tooLarge)
		s.large.next()
	}
	states, known := s.large.byStates(p)
	if !known {
		device, host := st.memory.AtLeast(p)
		hostLimit := s.hostLimit(&st.config.Shape, p.Devices())
		states.misses = s.misses(device) || hostLimit > 0 && host*float64(p.Devices())*(1-boundSlack) > hostLimit
	}
	if states.misses {
		return true
	}
	whole := s.large.byBatch(p)
	return whole.misses && p.MicroBatch >= whole.from && memory.GrowsWithBatch(p)
}

// exceeds reports whether p does not fit, by a bound that larger micro-batches share.
func (s *search) exceeds(st *site, p *spec.Plan) bool {
	if !s.skipsLarge(st) {
		return false
	}
	v := s.large.byBatch(p)
	v.from, v.misses = p.MicroBatch, s.misses(st.memory.AtLeastFrom(p))
	return v.misses
}

// misses reports whether a plan does not fit that needs devices of at least that many bytes.
func (s *search) misses(device float64) bool { return s.limit > 0 && device*(1-boundSlack) > s.limit }
