package family

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// optimusModel is the fitted performance model of one job.
type optimusModel struct {
	Job dpJob `json:"job"`
	optimusTheta
	Least optimusPoint `json:"least"` // of the fitted rows, each field by itself
	Most  optimusPoint `json:"most"`
}

// fitOptimus fits the rows of one key that train as most of them do:
// synchronously, asynchronously or by all-reduce.
func fitOptimus(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	in, err := collectDP(ctx, "optimus", data, canOptimus)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	rows, form := optimusRows(in.rows), optimusFormOf(in.job)
	theta, err := form.fit(rows)
	if err != nil {
		return nil, perfmodel.Card{}, fmt.Errorf("optimus: %s: %w", in.job, err)
	}
	m := &optimusModel{Job: in.job, optimusTheta: theta}
	m.Least, m.Most = optimusRange(rows)
	card := perfmodel.Card{Key: in.job.Key, Family: "optimus", NFit: len(rows), NLeftOut: in.left, Params: map[string]perfmodel.Param{},
		DataHash: perfmodel.HashRows(in.rows), Warnings: in.warnings}
	for i, p := range form.terms {
		card.Params[p.name] = perfmodel.Param{Value: theta.Theta[i], Unit: p.unit}
	}
	if open := form.named(theta.Blind); len(open) > 0 {
		card.Warnings = append(card.Warnings, "optimus: the rows do not tell apart "+strings.Join(open, ", "))
	}
	return m, card, nil
}

func canOptimus(c *spec.Config) error {
	_, err := dpPlan("optimus", c)
	return err
}

func optimusRange(rows []optimusRow) (least, most optimusPoint) {
	least, most = rows[0].optimusPoint, rows[0].optimusPoint
	for _, r := range rows {
		least.Workers, most.Workers = min(least.Workers, r.Workers), max(most.Workers, r.Workers)
		least.Servers, most.Servers = min(least.Servers, r.Servers), max(most.Servers, r.Servers)
		least.Samples, most.Samples = min(least.Samples, r.Samples), max(most.Samples, r.Samples)
		least.Spread, most.Spread = least.Spread && r.Spread, most.Spread || r.Spread
	}
	return least, most
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (m *optimusModel) MarshalBinary() ([]byte, error) { return json.Marshal(m) }

// loadOptimus reads what MarshalBinary wrote.
func loadOptimus(b []byte) (perfmodel.Fitted, error) {
	var m optimusModel
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("optimus: reading a fitted model: %w", err)
	}
	form := optimusFormOf(m.Job)
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

// Predict implements perfmodel.Predictor. It warns of sizes outside the fitted
// rows' and of terms these do not tell. There is no interval.
func (m *optimusModel) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if err := canOptimus(&c); err != nil {
		return spec.Prediction{}, err
	}
	if err := m.Job.covers("optimus", &c); err != nil {
		return spec.Prediction{}, err
	}
	x := newOptimusPoint(&c)
	sec := optimusFormOf(m.Job).seconds(x, m.Theta)
	return dpPrediction("optimus: "+m.Job.Key.String(), &c, sec, m.extrapolates(x))
}

// extrapolates names what the fitted rows have not shown of x.
func (m *optimusModel) extrapolates(x optimusPoint) (out []error) {
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
	if open := optimusFormOf(m.Job).unseen(x, m.Blind); len(open) > 0 {
		out = append(out, fmt.Errorf("optimus: the fitted rows do not tell apart %s, which matters here", strings.Join(open, ", ")))
	}
	return out
}
