package batch

import (
	"context"
	"errors"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// rowSite is shared by rows that differ only in their plans; it is prepared once.
type rowSite struct {
	config  spec.Config // Plan is zero
	predict perfmodel.Prepared
	err     error    // why there is no prediction
	unknown string   // unknown names
	note    string   // the same, if no calibration row has them either
	drifts  []string // changes of the site
	memory  *memory.Estimator
}

// rowSiteKey finds a rowSite. Of two with the same key the last one is kept.
type rowSiteKey struct {
	model, accelerator, devices, framework string
	seq                                    int
}

// rowSites prepares sites as rows come. It is for one goroutine.
type rowSites struct {
	p      perfmodel.Predictor
	memory *memory.Calibration
	seen   *calibrated
	drifts []perfmodel.Drift
	at     map[rowSiteKey]*rowSite
}

// of returns the site of c.
func (s *rowSites) of(ctx context.Context, c *spec.Config) *rowSite {
	key := rowSiteKey{c.Model.Name, c.Accelerator.Name, c.Shape.Devices, c.Framework, c.SeqLen}
	site := s.at[key]
	if site == nil || !site.has(c) {
		site = s.prepare(ctx, *c)
		s.at[key] = site
	}
	return site
}

// has reports whether c differs from the site only in its plan.
func (s *rowSite) has(c *spec.Config) bool {
	return s.config.Model == c.Model && s.config.Shape == c.Shape && s.config.Link == c.Link &&
		s.config.Accelerator == c.Accelerator && s.config.SeqLen == c.SeqLen && s.config.Framework == c.Framework
}

func (s *rowSites) prepare(ctx context.Context, c spec.Config) *rowSite {
	c.Plan = spec.Plan{}
	site := &rowSite{config: c}
	refuse := false
	if site.unknown, refuse = s.seen.unknown(&c); refuse {
		site.err = errors.New(site.unknown)
		return site
	}
	if !s.seen.known(&c) {
		site.note = site.unknown
	}
	for _, d := range s.drifts {
		if d.Stack == stackOf(&c) && d.Accelerator == c.Accelerator.Name {
			site.drifts = append(site.drifts, d.String())
		}
	}
	if e, err := memory.Of(s.p, s.memory, c); err == nil {
		site.memory = &e
	}
	if p, ok := s.p.(perfmodel.Preparer); ok {
		site.predict, site.err = p.Prepare(c)
		return site
	}
	site.predict = perfmodel.PreparedFunc(func(p spec.Plan, seq int) (spec.Prediction, error) {
		of := c
		of.Plan, of.SeqLen = p, seq
		return s.p.Predict(ctx, of)
	})
	return site
}

// predict fills in the prediction of c at its site.
func (a *answer) predict(s *rowSite, c *spec.Config) {
	if a.err = s.err; a.err == nil {
		a.pred, a.err = s.predict.Predict(c.Plan, c.SeqLen)
	}
	switch {
	case a.err != nil && s.unknown != "":
		a.err = errors.New(s.unknown)
	case a.err != nil:
	default:
		a.unknown, a.drifts = s.note, s.drifts
		a.fit(s, c)
	}
}

// fit fills in the memory of c, and the verdict on it, with the reason unless it fits.
func (a *answer) fit(s *rowSite, c *spec.Config) {
	if s.memory == nil {
		return
	}
	need, limit := s.memory.Plan(c.Plan), c.Accelerator.MemBytes
	need.SetMemory(&a.pred)
	if limit <= 0 {
		return
	}
	if a.verdict, _ = s.memory.Open(c, &need, a.row.Unrecorded); a.verdict != memory.Fits {
		a.misfit = need.Misfit(memory.Budget(limit, need.LogSD), limit)
	}
}
