package pollux

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/dataparallel"
	"github.com/pacer-ml/pacer/perfmodel/internal/lbfgsb"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// fitter fits Pollux's model with a given stopping rule, for a family of that name.
type fitter struct {
	name string
	stop lbfgsb.Settings
}

// Model is the fitted performance model of one job.
type Model struct {
	family fitter
	Job    dataparallel.Job `json:"job"`
	Params vec              `json:"params"` // in the order of paramNames
	Seen   sizeRange        `json:"seen"`
}

// fit fits the rows of one key. Rows that Pollux does not distinguish, such as "4+4" and "6+2" devices, count
// as one, with the mean of their times.
func (f fitter) fit(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	m, card, err := f.fitKey(ctx, data)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	return m, card, nil
}

func (f fitter) fitKey(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (*Model, perfmodel.Card, error) {
	in, err := dataparallel.Collect(ctx, f.name, data, f.covers)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	rows := averageRows(in.Rows)
	v, err := fitRows(ctx, rows, f.stop)
	if err != nil {
		return nil, perfmodel.Card{}, fmt.Errorf("%s: %s: %w", f.name, in.Job.Key, err)
	}
	m := &Model{family: f, Job: in.Job, Params: v, Seen: newSizeRange(rows)}
	hash, err := perfmodel.HashRows(ctx, in.Rows)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	return m, perfmodel.Card{Key: in.Job.Key, Family: f.name, NFit: len(rows), NLeftOut: in.Left, Params: m.params(),
		DataHash: hash, Warnings: append(in.Warnings, m.pinned()...)}, nil
}

// covers returns an error wrapping perfmodel.ErrNotCovered for a configuration with features that the formula
// lacks.
func (f fitter) covers(c *spec.Config) error {
	p, err := dataparallel.Plan(f.name, c)
	if err == nil && p.ParamServers > 0 {
		err = fmt.Errorf("%s: plan %s has parameter servers: %w", f.name, c.Plan, perfmodel.ErrNotCovered)
	}
	return err
}

// load reads what MarshalBinary wrote.
func (f fitter) load(b []byte) (perfmodel.Fitted, error) {
	var m Model
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%s: reading a fitted model: %w", f.name, err)
	}
	if err := m.restore(f); err != nil {
		return nil, err
	}
	return &m, nil
}

// restore completes a model read from disk and checks its parameters.
func (m *Model) restore(f fitter) error {
	m.family = f
	if err := m.Params.check(); err != nil {
		return fmt.Errorf("%s: fitted model of %s: %w", f.name, m.Job.Key, err)
	}
	return nil
}

// check reports a parameter out of its bounds.
func (v *vec) check() error {
	for i, p := range paramNames {
		least, most := leastParam, math.MaxFloat64
		if i == plOverlap {
			least, most = 1, 10
		}
		if !(v[i] >= least && v[i] <= most) {
			return fmt.Errorf("%s is %g, want %g to %g", p.name, v[i], least, most)
		}
	}
	return nil
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (m *Model) MarshalBinary() ([]byte, error) { return json.Marshal(m) }

func (m *Model) params() map[string]perfmodel.Param {
	out := map[string]perfmodel.Param{}
	for i, p := range paramNames {
		out[p.name] = perfmodel.Param{Value: m.Params[i], Unit: p.unit}
	}
	return out
}

// by names the model, for spec.Prediction.By.
func (m *Model) by() string { return m.family.name + ": " + m.Job.Key.String() }

// pinned returns a warning for each parameter that is not fitted, with the reason.
func (m *Model) pinned() (out []string) {
	say := func(pinned bool, why string) {
		if pinned {
			out = append(out, m.family.name+": "+why)
		}
	}
	s := m.Seen
	say(s.LeastMicro == s.MostMicro, "rows of one micro-batch: alpha_c is set to half the gradient time")
	say(!s.OneNode, "no row of several replicas on one node: alpha_r and beta_r are set to no cost")
	say(s.MostNodes == 1, "no row on several nodes: alpha_n and beta_n are set to 1.1 times alpha_r and beta_r")
	say(s.MostReplicas <= 2, "no row of more than two replicas: beta_r and beta_n are set to no cost")
	return out
}

// Predict implements perfmodel.Predictor. It warns about sizes outside of the fitted rows. The prediction has
// no interval.
func (m *Model) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if err := perfmodel.NotAlone(m.by(), &c); err != nil {
		return spec.Prediction{}, err
	}
	x, err := m.point(&c)
	if err != nil {
		return spec.Prediction{}, err
	}
	return dataparallel.Prediction(m.by(), &c, x.seconds(&m.Params), m.extrapolates(x))
}

// point returns the values of c that the model uses, or an error wrapping perfmodel.ErrNotCovered.
func (m *Model) point(c *spec.Config) (point, error) {
	if err := m.family.covers(c); err != nil {
		return point{}, err
	}
	if err := m.Job.Covers(m.family.name, c); err != nil {
		return point{}, err
	}
	p := c.Plan.Normal()
	return newPoint(c, &p), nil
}

// extrapolates returns a warning for each dimension in which x is outside of the fitted rows.
func (m *Model) extrapolates(x point) (out []error) {
	say := func(beyond bool, format string, args ...any) {
		if beyond {
			out = append(out, fmt.Errorf(m.family.name+": extrapolates: "+format, args...))
		}
	}
	s := m.Seen
	say(x.Micro < s.LeastMicro || x.Micro > s.MostMicro, "micro-batch %d, fitted to %d..%d", x.Micro, s.LeastMicro, s.MostMicro)
	say(x.Replicas > s.MostReplicas, "%d replicas, fitted to at most %d", x.Replicas, s.MostReplicas)
	say(x.Nodes > s.MostNodes, "%d nodes, fitted to at most %d", x.Nodes, s.MostNodes)
	say(x.Nodes == 1 && x.Replicas > 1 && !s.OneNode, "several replicas on one node, but no fitted row has that")
	return out
}
