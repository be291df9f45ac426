package hybrid

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/shapeless"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// byShape separates the rows for physics from those for package shapeless. If shapeless does not cover some row
// of a job, all rows of the job are for physics, except those with parameter servers.
func byShape(rows []spec.Measurement) (shaped, others []spec.Measurement) {
	more := map[spec.Key]bool{}
	for i := range rows {
		if !shapeless.Covers(&rows[i].Config) {
			more[rows[i].Config.Key()] = true
		}
	}
	shaped = slices.Clone(rows)
	n := 0
	for i := range rows {
		if c := &rows[i].Config; shapeless.Covers(c) && (!more[c.Key()] || c.Plan.ParamServers > 0) {
			others = append(others, rows[i])
		} else {
			shaped[n] = rows[i]
			n++
		}
	}
	return shaped[:n], others
}

// fitShapeless fits each job without a shape.
func (h *Model) fitShapeless(ctx context.Context, rows []spec.Measurement) error {
	groups := map[shapeless.Key][]spec.Measurement{}
	for _, m := range rows {
		k := shapeless.KeyOf(&m.Config)
		groups[k] = append(groups[k], m)
	}
	for k, of := range groups {
		fitted, err := h.prior.shapeless.Fit(ctx, of[0].Config, of)
		if err != nil {
			return fmt.Errorf("hybrid: %s: %w", k.Key, err)
		}
		h.shapeless[k] = fitted
	}
	h.shapelessRows = rows
	return nil
}

// predictShapeless predicts a job without a shape by the first of these that covers it: a fit to its rows, the
// prior of its model at other sites, physics, and the prior of all jobs.
func (h *Model) predictShapeless(ctx context.Context, c *spec.Config) (spec.Prediction, error) {
	if f := h.shapeless[shapeless.KeyOf(c)]; f != nil {
		return f.Prediction(c)
	}
	knows, err := h.prior.shapeless.HasModel(ctx, c)
	if err != nil {
		return spec.Prediction{}, err
	}
	if knows {
		return h.prior.shapeless.Predict(ctx, c)
	}
	p, err := h.base.predict(c)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		if like, other := h.prior.shapeless.Predict(ctx, c); other == nil {
			return like, nil
		}
	}
	return p, err
}

// shapelessRow is the stored form of a row of a job without a shape.
type shapelessRow struct {
	Config spec.Config `json:"config"`
	Sec    float64     `json:"sec"`
}

func shapelessRows(rows []spec.Measurement) (out []shapelessRow) {
	for _, m := range rows {
		out = append(out, shapelessRow{m.Config, m.MedianStepSec()})
	}
	return out
}

func (h *Model) loadShapeless(record []shapelessRow) error {
	var rows []spec.Measurement
	for _, r := range record {
		if !(r.Sec > 0) || math.IsInf(r.Sec, 0) || !shapeless.Covers(&r.Config) {
			return fmt.Errorf("hybrid: stored row of %s has a step of %g s, want a positive, finite time of a job without layers", r.Config.Key(), r.Sec)
		}
		rows = append(rows, spec.Measurement{Config: r.Config, Outcome: spec.OK, StepSec: []float64{r.Sec}})
	}
	return h.fitShapeless(context.Background(), rows)
}
