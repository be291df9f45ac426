package family

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/lbfgsb"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// polluxFamily is Pollux's model fitted with a given stop.
type polluxFamily struct {
	name string
	stop lbfgsb.Settings
}

// polluxModel is the fitted performance model of one job.
type polluxModel struct {
	by     string
	Job    dpJob       `json:"job"`
	Params polluxVec   `json:"params"` // in the order of polluxParams
	Seen   polluxRange `json:"seen"`
}

// fit fits the rows of one key. Rows that Pollux cannot tell apart, such as
// "4+4" and "6+2" devices, count as one, at the mean of their times.
func (f polluxFamily) fit(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	in, err := collectDP(ctx, f.name, data, f.can)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	m, n, err := f.fitJob(in)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	card := perfmodel.Card{Key: in.job.Key, Family: f.name, NFit: n, NLeftOut: in.left, Params: m.params(),
		DataHash: perfmodel.HashRows(in.rows), Warnings: append(in.warnings, m.unseen()...)}
	return m, card, nil
}

// fitJob returns the model of in and how many points it was fitted to.
func (f polluxFamily) fitJob(in dpRows) (*polluxModel, int, error) {
	rows := polluxRows(in.rows)
	v, err := fitPolluxRows(rows, f.stop)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %s: %w", f.name, in.job.Key, err)
	}
	return f.model(in.job, v, newPolluxRange(rows)), len(rows), nil
}

func (f polluxFamily) model(job dpJob, v polluxVec, seen polluxRange) *polluxModel {
	return &polluxModel{by: f.name + ": " + job.Key.String(), Job: job, Params: v, Seen: seen}
}

// can returns an error wrapping perfmodel.ErrNotCovered for a configuration the
// form has no terms for.
func (f polluxFamily) can(c *spec.Config) error {
	p, err := dpPlan(f.name, c)
	if err == nil && p.ParamServers > 0 {
		err = fmt.Errorf("%s: plan %s has parameter servers: %w", f.name, c.Plan, perfmodel.ErrNotCovered)
	}
	return err
}

func (f polluxFamily) load(b []byte) (perfmodel.Fitted, error) {
	var m polluxModel
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%s: reading a fitted model: %w", f.name, err)
	}
	if err := m.Params.check(); err != nil {
		return nil, fmt.Errorf("%s: fitted model of %s: %w", f.name, m.Job.Key, err)
	}
	return f.model(m.Job, m.Params, m.Seen), nil
}

// check reports a parameter out of its bounds.
func (v *polluxVec) check() error {
	for i, p := range polluxParams {
		least, most := polluxLeast, math.MaxFloat64
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
func (m *polluxModel) MarshalBinary() ([]byte, error) { return json.Marshal(m) }

func (m *polluxModel) params() map[string]perfmodel.Param {
	out := map[string]perfmodel.Param{}
	for i, p := range polluxParams {
		out[p.name] = perfmodel.Param{Value: m.Params[i], Unit: p.unit}
	}
	return out
}

// unseen says which parameters were not fitted, and why.
func (m *polluxModel) unseen() (out []string) {
	say := func(seen bool, why string) {
		if !seen {
			out = append(out, m.by+": "+why)
		}
	}
	s := m.Seen
	say(s.Batches, "rows of one micro-batch: alpha_c is taken to be half the gradient time")
	say(s.OneNode, "no row of several replicas on one node: alpha_r and beta_r are taken to be nothing")
	say(s.Nodes, "no row on several nodes: alpha_n and beta_n are taken to be 1.1 times alpha_r and beta_r")
	say(s.Replicas3, "no row of more than two replicas: beta_r and beta_n are taken to be nothing")
	return out
}

// Predict implements perfmodel.Predictor. It warns where the prediction rests
// on parameters that were not fitted. There is no interval.
func (m *polluxModel) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	family := polluxFamily{name: m.name()}
	if err := family.can(&c); err != nil {
		return spec.Prediction{}, err
	}
	if err := m.Job.covers(family.name, &c); err != nil {
		return spec.Prediction{}, err
	}
	p := c.Plan.Normal()
	x := newPolluxPoint(&c, &p)
	return m.predict(&c, x)
}
