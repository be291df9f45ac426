package planner

import (
	"errors"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// site is what the candidates of one model on one shape share.
type site struct {
	config   spec.Config // Plan is zero
	predict  perfmodel.Prepared
	atLeast  perfmodel.StepBound // nil = none
	prepared bool                // memory need not be predicted before it is checked
	memory   memory.Estimator
	known    bool // memory covers the model
}

// estimate sets the memory of k and its budget on devices of limit bytes. It leaves 0 bytes where memory is unknown.
func (st *site) estimate(k *candidate, limit float64) {
	var b memory.Breakdown
	if st.known {
		b = st.memory.Plan(k.plan)
		k.bytes, k.host = b.Total(), b.HostBytes*float64(k.plan.Devices())
	}
	k.budget = memory.Budget(limit, b.LogSD)
}

// siteOf returns the index of c's site. It reuses the last site while only the
// plan changes.
func (s *search) siteOf(c *spec.Config) (int32, error) {
	fixed := *c
	fixed.Plan = spec.Plan{}
	if n := len(s.sites); n > 0 && s.sites[n-1].config == fixed {
		return int32(n - 1), nil
	}
	st := site{config: fixed}
	like := s.lastLike(&st)
	if err := s.setMemory(&st, like); err != nil {
		return 0, err
	}
	var err error
	if st.predict, st.prepared, err = s.predictor(fixed); err != nil {
		return 0, err
	}
	if like != nil {
		st.atLeast = like.atLeast
	} else if b, ok := s.pl.p.(perfmodel.Bounder); ok {
		if st.atLeast, err = b.StepAtLeast(fixed); err != nil {
			return 0, err
		}
	}
	if s.large != nil {
		s.large.next()
	}
	s.sites = append(s.sites, st)
	return int32(len(s.sites) - 1), nil
}

func (s *search) predictor(c spec.Config) (f perfmodel.Prepared, prepared bool, err error) {
	if p, ok := s.pl.p.(perfmodel.Preparer); ok {
		f, err = p.Prepare(c)
		return f, true, err
	}
	return s.predictEach(&c), false, nil
}

// predictEach predicts one configuration at a time.
func (s *search) predictEach(c *spec.Config) perfmodel.Prepared {
	full := *c
	return perfmodel.PreparedFunc(func(p spec.Plan, seq int) (spec.Prediction, error) {
		full.Plan, full.SeqLen = p, seq
		return s.pl.p.Predict(s.ctx, full)
	})
}

// lastLike returns the last site if st differs from it in shape only, else nil.
func (s *search) lastLike(st *site) *site {
	if len(s.sites) == 0 {
		return nil
	}
	last := &s.sites[len(s.sites)-1]
	reshaped := last.config
	if reshaped.Shape = st.config.Shape; reshaped != st.config {
		return nil
	}
	return last
}

// setMemory sets the memory estimator of st, that of like, which may be nil, if it differs in shape only and memory does
// not depend on that.
func (s *search) setMemory(st, like *site) error {
	if _, own := s.pl.p.(memory.Predictor); like != nil && !own && !like.memory.ByShape() {
		st.memory, st.known = like.memory, like.known
		return nil
	}
	var err error
	st.memory, err = s.pl.Memory(st.config)
	if st.known = err == nil; errors.Is(err, perfmodel.ErrNotCovered) {
		return nil
	}
	return err
}
