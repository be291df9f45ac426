package family

import (
	"errors"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// opaqueKey is what an opaque form is fitted to by itself.
type opaqueKey struct {
	spec.Key
	servers bool
}

func opaqueKeyOf(c *spec.Config) opaqueKey {
	return opaqueKey{c.Key(), c.Plan.ParamServers > 0}
}

// opaqueJob reports whether c is left to the forms for jobs known only by batch
// and placement.
func opaqueJob(c *spec.Config) bool {
	form, _ := opaqueFormOf(c)
	return form == serversForm || form != nil && !c.Model.HasShape()
}

// byShape parts rows that physics learns from from those of jobs of which only
// batch and placement are known. A job some of whose rows ask for more is not
// one of these.
func byShape(rows []spec.Measurement) (shaped, shapeless []spec.Measurement) {
	more := map[spec.Key]bool{}
	for i := range rows {
		if !opaqueJob(&rows[i].Config) {
			more[rows[i].Config.Key()] = true
		}
	}
	for _, m := range rows {
		if opaqueJob(&m.Config) && (!more[m.Config.Key()] || m.Config.Plan.ParamServers > 0) {
			shapeless = append(shapeless, m)
		} else {
			shaped = append(shaped, m)
		}
	}
	return shaped, shapeless
}

// fitOpaque fits their form to each of the jobs without a shape.
func (h *Hybrid) fitOpaque(rows []spec.Measurement) error {
	groups := map[opaqueKey][]spec.Measurement{}
	for _, m := range rows {
		k := opaqueKeyOf(&m.Config)
		groups[k] = append(groups[k], m)
	}
	for k, of := range groups {
		fitted, err := h.prior.opaque.fit(of[0].Config, of)
		if err != nil {
			return fmt.Errorf("hybrid: %s: %w", k.Key, err)
		}
		h.opaque[k] = fitted
	}
	h.shapeless = rows
	return nil
}

// predictOpaque predicts a job without a shape: by a fit to its rows, by what
// is known of its model elsewhere, by physics if that covers it, and else by
// what such jobs are like.
func (h *Hybrid) predictOpaque(c *spec.Config) (spec.Prediction, error) {
	if f := h.opaque[opaqueKeyOf(c)]; f != nil {
		return f.prediction(c)
	}
	if h.prior.opaque.knows(c) {
		return h.prior.opaque.predict(c)
	}
	p, err := h.base.predict(c)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		if like, other := h.prior.opaque.predict(c); other == nil {
			return like, nil
		}
	}
	return p, err
}

// normal90 is half the width of a normal distribution's middle nine tenths.
const normal90 = 1.645

// prediction is predict as others give it.
func (f *opaqueFitted) prediction(c *spec.Config) (spec.Prediction, error) {
	mean, sd, err := f.predict(c)
	if err != nil {
		return spec.Prediction{}, err
	}
	thr, spread := float64(c.Plan.GlobalBatch())*math.Exp(-mean), math.Exp(normal90*sd)
	out := spec.Prediction{Throughput: thr, Lo: thr / spread, Hi: thr * spread, By: "hybrid"}
	if !(out.Lo > 0) || math.IsInf(out.Hi, 0) {
		return spec.Prediction{}, fmt.Errorf("hybrid: %s has no finite step time: %w", c.Plan, perfmodel.ErrNotCovered)
	}
	return out, nil
}

// opaqueRow is a row of a job without a shape on disk.
type opaqueRow struct {
	Config spec.Config `json:"config"`
	Sec    float64     `json:"sec"`
}

func opaqueRecord(rows []spec.Measurement) (out []opaqueRow) {
	for _, m := range rows {
		out = append(out, opaqueRow{m.Config, m.MedianStepSec()})
	}
	return out
}

func (h *Hybrid) loadOpaque(record []opaqueRow) error {
	var rows []spec.Measurement
	for _, r := range record {
		if !(r.Sec > 0) || math.IsInf(r.Sec, 0) || !opaqueJob(&r.Config) {
			return fmt.Errorf("hybrid: stored row of %s at %g s is none", r.Config.Key(), r.Sec)
		}
		rows = append(rows, spec.Measurement{Config: r.Config, Outcome: spec.OK, StepSec: []float64{r.Sec}})
	}
	return h.fitOpaque(rows)
}
