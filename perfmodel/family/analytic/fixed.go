package analytic

import (
	"sync"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// site is all of a Config but its plan and the length of its samples. It implements perfmodel.Prepared.
type site struct {
	pr    Prepared
	shape spec.Model // of shapeOf
	seq   int        // of pr

	once     sync.Once
	machines []machine // of Prepared.machines; set by once
}

func (ph *Physics) prepare(c *spec.Config, by string) (*site, error) {
	s := &site{shape: shapeOf(&c.Model), seq: c.SeqLen}
	if err := ph.Open(c, by, &s.pr); err != nil {
		return nil, err
	}
	return s, nil
}

// setMachines sets machines.
func (s *site) setMachines() {
	s.machines = make([]machine, len(s.pr.variants))
	for i := range s.machines {
		m, v := &s.machines[i], &s.pr.variants[i]
		*m = s.pr.machine
		m.stack = v.stack
		m.use(v.k)
	}
}

// Predict implements perfmodel.Prepared.
func (s *site) Predict(p spec.Plan, seq int) (spec.Prediction, error) {
	p = p.Normal()
	if seq == s.seq {
		return s.pr.predict(&p)
	}
	other := s.pr
	if err := other.setSeq(&s.shape, seq); err != nil {
		return spec.Prediction{}, err
	}
	return other.predict(&p)
}

// fixedPlan is a plan at a site, with what its steps have in common.
type fixedPlan struct {
	*site
	plan spec.Plan // normal
	on   []fixedOn // the variants
}

// fixedOn is a plan on a variant.
type fixedOn struct {
	variant int
	weight  float64
	plan    spec.Plan // as the stack changes it
	fixed   fixed
}

// Fix implements perfmodel.Prepared.
func (s *site) Fix(p spec.Plan) perfmodel.LengthFunc {
	p = p.Normal()
	if err := covered(&p); err != nil || !s.pr.work.shape || s.pr.alone > 0 {
		return func(seq int) (spec.Prediction, error) { return s.Predict(p, seq) }
	}
	f := &fixedPlan{site: s, plan: p}
	s.once.Do(s.setMachines)
	one, own := s.pr, s.pr.owned(&p)
	one.machines = s.machines
	add := func(variant int, weight float64) {
		on := fixedOn{variant: variant, weight: weight, plan: p}
		one.applyStack(&on.plan)
		on.fixed = one.fixedOf(&on.plan, &own)
		f.on = append(f.on, on)
	}
	if s.pr.variants == nil {
		add(0, 1)
		return f.at
	}
	for i, w := range &s.pr.weight[stack.UseOf(&p)] {
		if w > 0 {
			one.use(i, nil)
			add(i, w)
		}
	}
	return f.at
}

// at predicts the plan on samples of seq tokens.
func (f *fixedPlan) at(seq int) (spec.Prediction, error) {
	one := f.pr
	one.machines = f.machines
	if seq != f.seq {
		if err := one.setSeq(&f.shape, seq); err != nil {
			return spec.Prediction{}, err
		}
	}
	e := f.estimate(&one)
	if err := e.check(&f.plan); err != nil {
		return spec.Prediction{}, err
	}
	return one.prediction(&f.plan, &e), nil
}

// estimate changes pr to one of the variants.
func (f *fixedPlan) estimate(pr *Prepared) Estimate {
	if pr.variants == nil {
		return estimateOf(pr.partsAt(&f.on[0].plan, &f.on[0].fixed))
	}
	var mean geometricMean
	for i := range f.on {
		on := &f.on[i]
		pr.use(on.variant, nil)
		parts := pr.partsAt(&on.plan, &on.fixed)
		mean.add(&parts, on.weight)
	}
	return mean.estimate()
}
