package optimus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/dataparallel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Model is the fitted performance model of one job.
type Model struct {
	Job dataparallel.Job `json:"job"`
	estimate
	Least point `json:"least"` // smallest value of each field over the fitted rows
	Most  point `json:"most"`
}

// fit fits the rows of one key that train in the most frequent way: synchronously, asynchronously or by
// all-reduce.
func fit(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	in, err := dataparallel.Collect(ctx, "optimus", data, covers)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	rows, form := averageRows(in.Rows), formOf(in.Job)
	theta, err := form.fit(rows)
	if err != nil {
		return nil, perfmodel.Card{}, fmt.Errorf("optimus: %s: %w", in.Job, err)
	}
	hash, err := perfmodel.HashRows(ctx, in.Rows)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	m := &Model{Job: in.Job, estimate: theta}
	m.Least, m.Most = rangeOf(rows)
	card := perfmodel.Card{Key: in.Job.Key, Family: "optimus", NFit: len(rows), NLeftOut: in.Left, Params: map[string]perfmodel.Param{},
		DataHash: hash, Warnings: in.Warnings}
	for i, p := range form.terms {
		card.Params[p.name] = perfmodel.Param{Value: theta.Theta[i], Unit: p.unit}
	}
	if open := form.named(theta.Blind); len(open) > 0 {
		card.Warnings = append(card.Warnings, "optimus: the rows do not identify "+strings.Join(open, ", "))
	}
	return m, card, nil
}

func covers(c *spec.Config) error {
	_, err := dataparallel.Plan("optimus", c)
	return err
}

func rangeOf(rows []row) (least, most point) {
	least, most = rows[0].point, rows[0].point
	for _, r := range rows {
		least.Workers, most.Workers = min(least.Workers, r.Workers), max(most.Workers, r.Workers)
		least.Servers, most.Servers = min(least.Servers, r.Servers), max(most.Servers, r.Servers)
		least.Samples, most.Samples = min(least.Samples, r.Samples), max(most.Samples, r.Samples)
		least.Spread, most.Spread = least.Spread && r.Spread, most.Spread || r.Spread
	}
	return least, most
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (m *Model) MarshalBinary() ([]byte, error) { return json.Marshal(m) }

// load reads what MarshalBinary wrote.
func load(b []byte) (perfmodel.Fitted, error) {
	var m Model
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("optimus: reading a fitted model: %w", err)
	}
	form := formOf(m.Job)
	for _, v := range append([][]float64{m.Theta}, m.Blind...) {
		if len(v) != len(form.terms) {
			return nil, fmt.Errorf("optimus: fitted model of %s with %d parameters, want %d", m.Job.Key, len(v), len(form.terms))
		}
	}
	for i, v := range m.Theta {
		if !(v >= 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("optimus: fitted model of %s: %s is %g, want 0 or more", m.Job.Key, form.terms[i].name, v)
		}
	}
	return &m, nil
}

// Predict implements perfmodel.Predictor. It warns about sizes outside of the fitted rows, and about terms that
// these do not identify. The prediction has no interval.
func (m *Model) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if err := cmp.Or(perfmodel.NotAlone("optimus", &c), covers(&c)); err != nil {
		return spec.Prediction{}, err
	}
	if err := m.Job.Covers("optimus", &c); err != nil {
		return spec.Prediction{}, err
	}
	x := newPoint(&c)
	sec := formOf(m.Job).seconds(x, m.Theta)
	return dataparallel.Prediction("optimus: "+m.Job.Key.String(), &c, sec, m.extrapolates(x))
}

// extrapolates returns a warning for each dimension in which x is outside of the fitted rows.
func (m *Model) extrapolates(x point) (out []error) {
	outside := func(what string, v, least, most int) {
		if v < least || v > most {
			out = append(out, fmt.Errorf("optimus: extrapolates: %d %s, fitted to %d..%d", v, what, least, most))
		}
	}
	outside("workers", x.Workers, m.Least.Workers, m.Most.Workers)
	outside("parameter servers", x.Servers, m.Least.Servers, m.Most.Servers)
	outside("samples per worker", x.Samples, m.Least.Samples, m.Most.Samples)
	if x.Spread && !m.Most.Spread {
		out = append(out, fmt.Errorf("optimus: extrapolates: several nodes, fitted to one"))
	}
	if open := formOf(m.Job).unseen(x, m.Blind); len(open) > 0 {
		out = append(out, fmt.Errorf("optimus: the fitted rows do not identify %s, which matters here", strings.Join(open, ", ")))
	}
	return out
}
