package planner

import (
	"context"
	"hash/maphash"
	"sync/atomic"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// FixedPlan is a request that fixes plan and shape, checked once and answered at many sequence lengths. It is safe for
// concurrent use.
type FixedPlan struct {
	pl             *Planner
	base           *Request // all but plan, shape, batch and devices
	plan           *spec.Plan
	shape          spec.Shape
	batch, devices int
	normal         spec.Plan
	direct         bool       // it may be answered without a search
	site           *fixedSite // nil where it opens at some lengths only

	used  atomic.Bool
	parts atomic.Pointer[fixedParts] // nil before the second length: for one it costs more than it saves
}

// fixedParts predicts a plan at a site.
type fixedParts struct {
	memory  *memory.Fixed
	predict perfmodel.LengthFunc
	config  spec.Config // without SeqLen
}

// Fixed returns the one choice of a request that fixes plan and shape. It equals
// the answer of Rank and is faster for legal plans without offload.
func (pl *Planner) Fixed(ctx context.Context, r Request) (out Choice, err error) {
	f := FixedPlan{pl: pl, base: &r, plan: r.Plan, shape: r.Shape, batch: r.GlobalBatch, devices: r.Devices}
	f.prepare()
	err = f.At(ctx, r.SeqLen, &out)
	return out, err
}

// PrepareFixed prepares Fixed of a plan on a shape for many sequence lengths. The rest of the request is that of base,
// which many plans share and which must not change.
func (pl *Planner) PrepareFixed(base *Request, plan *spec.Plan, shape spec.Shape) *FixedPlan {
	f := &FixedPlan{pl: pl, base: base, plan: plan, shape: shape, batch: plan.GlobalBatch(), devices: plan.Devices()}
	f.prepare()
	return f
}

// request returns the whole request.
func (f *FixedPlan) request() Request {
	r := *f.base
	r.Plan, r.Shape, r.GlobalBatch, r.Devices = f.plan, f.shape, f.batch, f.devices
	return r
}

// Plan returns the plan, in normal form, and its shape.
func (f *FixedPlan) Plan() (spec.Plan, spec.Shape) { return f.plan.Normal(), f.shape }

func (f *FixedPlan) prepare() {
	r, pl := f.request(), f.pl
	if _, all := pl.o.Space.(Enumerate); !all || r.Plan == nil || r.Shape.Devices == "" || pl.o.Reserve > 0 || r.Validate() != nil {
		return
	}
	if r.MinBatch > 0 || r.MinDevices > 0 || r.NoiseScale > 0 || r.TargetThroughput > 0 || r.Objective != "" {
		return
	}
	f.normal = r.Plan.Normal()
	if f.normal.Devices() != r.Shape.Total() || f.normal.Check(r.Model) != nil {
		return
	}
	f.direct = true
	var c spec.Config
	f.configure(&c, r.SeqLen)
	f.site, _ = pl.fixedSite(&c) // Direct tries again at its length
}

// configure sets c to the configuration at a sequence length.
func (f *FixedPlan) configure(c *spec.Config, seq int) {
	r := f.base
	*c = spec.Config{SeqLen: seq, Shape: f.shape, Link: r.Link, Framework: r.Framework}
	c.Model, c.Plan, c.Accelerator = r.Model, f.normal, r.Accelerator
}

// At sets out to the one choice on samples of seq tokens; 0 = the model's own length.
func (f *FixedPlan) At(ctx context.Context, seq int, out *Choice) error {
	if f.Direct(ctx, seq, out) {
		return nil
	}
	*out = Choice{}
	r := f.request()
	r.SeqLen = seq
	ranking, err := f.pl.Rank(ctx, r)
	if err != nil {
		return err
	}
	*out = ranking.Choices[0] // a fixed plan and shape has one choice or an error
	return nil
}

// Direct is At without a search. ok is false, and out not complete, where the plan is illegal, its memory unknown, or host
// memory in use; At then searches.
func (f *FixedPlan) Direct(ctx context.Context, seq int, out *Choice) (ok bool) {
	if !f.direct || seq < 0 {
		return false
	}
	c, parts := &out.Config, f.parts.Load()
	if parts != nil {
		*c = parts.config
		c.SeqLen = seq
	} else {
		f.configure(c, seq)
	}
	out.Why, out.Verdict, out.CostPerSample = "", "", 0
	if cannotSplit(&c.Model, c.Seq(), &c.Plan) != noViolation {
		return false
	}
	st, err := f.site, error(nil)
	if st == nil {
		if st, err = f.pl.fixedSite(c); err != nil {
			return false
		}
	}
	if parts == nil {
		parts = f.partsAt(st, c)
	}
	var b memory.Breakdown
	if parts != nil {
		b = parts.memory.At(seq)
	} else {
		peak := st.memory.AtSeq(seq)
		b = peak.Plan(c.Plan)
	}
	if b.HostBytes > 0 {
		return false
	}
	switch {
	case parts != nil:
		out.Prediction, err = parts.predict(seq)
	case st.predict != nil:
		out.Prediction, err = st.predict.Predict(c.Plan, seq)
	default:
		out.Prediction, err = f.pl.p.Predict(ctx, *c)
	}
	if err != nil {
		return false
	}
	total := b.Total()
	switch out.Prediction.MemoryBytes {
	case 0, total:
		b.SetMemory(&out.Prediction)
	default: // the predictor has its own memory model
		return false
	}
	f.base.setCosts(out)
	limit := c.Accelerator.MemBytes
	budget := memory.Budget(limit, b.LogSD)
	switch out.Fits = budget <= 0 || total <= budget; {
	case !out.Fits:
		if parts != nil {
			out.Verdict = parts.memory.Open(c, &b)
		} else {
			peak := st.memory.AtSeq(seq)
			out.Verdict, _ = peak.Open(c, &b, "")
		}
		out.Why = b.Misfit(budget, limit)
	case budget > 0 && total > 0:
		out.Verdict = memory.Fits
	}
	return true
}

// partsAt returns what the plan has at its site, with c but for its length; nil if that need not be known yet, or the site
// depends on the length.
func (f *FixedPlan) partsAt(st *fixedSite, c *spec.Config) *fixedParts {
	if !f.used.Swap(true) || f.site == nil || st.predict == nil {
		return nil
	}
	parts := &fixedParts{st.memory.Fix(f.normal), st.predict.Fix(f.normal), *c}
	f.parts.Store(parts)
	return parts
}

// fixedSite is what fixed plans of one model on the same devices share. It is immutable.
type fixedSite struct {
	config  spec.Config        // Plan and SeqLen are zero
	predict perfmodel.Prepared // nil where the predictor is no perfmodel.Preparer
	memory  memory.Estimator
}

// maxSiteShape bounds the shape of a cached site, bytes: 8192 nodes.
const maxSiteShape = 16 << 10

// fixedSites caches opened sites, one per slot.
type fixedSites [1 << 8]atomic.Pointer[fixedSite]

var slotSeed = maphash.MakeSeed()

// slot returns the slot of c. Sites that differ in other fields only share it.
func (s *fixedSites) slot(c *spec.Config) *atomic.Pointer[fixedSite] {
	h := maphash.Comparable(slotSeed, struct{ model, accelerator, devices, framework string }{
		c.Model.Name, c.Accelerator.Name, c.Shape.Devices, c.Framework})
	return &s[h%uint64(len(s))]
}

// isOf reports whether c differs from the site only in its plan and sequence length.
func (st *fixedSite) isOf(c *spec.Config) bool {
	return st.config.Model == c.Model && st.config.Accelerator == c.Accelerator && st.config.Shape == c.Shape &&
		st.config.Link == c.Link && st.config.Framework == c.Framework && st.config.AloneStage == c.AloneStage
}

// fixedSite returns the site of c, and opens it if it is not cached.
func (pl *Planner) fixedSite(c *spec.Config) (*fixedSite, error) {
	slot := pl.fixed.slot(c)
	if st := slot.Load(); st != nil && st.isOf(c) {
		return st, nil
	}
	opened := *c
	opened.Plan = spec.Plan{}
	e, err := pl.Memory(opened)
	if err != nil {
		return nil, err
	}
	st := &fixedSite{config: opened, memory: e}
	st.config.SeqLen = 0
	if p, ok := pl.p.(perfmodel.Preparer); ok {
		if st.predict, err = p.Prepare(opened); err != nil {
			return nil, err
		}
	}
	if len(c.Shape.Devices) <= maxSiteShape {
		slot.Store(st)
	}
	return st, nil
}
