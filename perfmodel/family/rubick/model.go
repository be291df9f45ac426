package rubick

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Model is the fitted performance model of one job type.
type Model struct {
	key   spec.Key
	rows  []row // rows fitted, in canonical order
	post  *posterior
	shown shownRows // features and sizes of rows

	by       string
	warnings sync.Map // featureSet -> []error: the warnings for features that no row has
}

// fit fits the rows of one key. Repeats of a configuration count as one row, at the median of their times. The
// Card's errors are leave-one-out errors, with the formula linearised at the fit.
func fit(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	ms, left, warnings, err := Collect(ctx, data)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	m, kept, err := FitRows(ctx, ms, left)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	if len(kept) < len(ms) {
		warnings = append(warnings, fmt.Sprintf("rubick: fitted on %d of %d configurations, evenly spaced", len(kept), len(ms)))
	}
	hash, err := perfmodel.HashRows(ctx, kept)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	card := m.card(kept)
	card.DataHash = hash
	card.NLeftOut = left
	card.Warnings = append(card.Warnings, warnings...)
	return m, card, nil
}

// FitRows fits the rows that Collect returns, and returns the rows it used. Errors are those of Family.Fit.
func FitRows(ctx context.Context, ms []spec.Measurement, left int) (m *Model, kept []spec.Measurement, err error) {
	if err := enough(ms, left); err != nil {
		return nil, nil, err
	}
	if len(ms) > maxRows {
		ms = thin(ms, maxRows)
	}
	rows := rowsOf(ms)
	post, err := fitBest(ctx, rows)
	if err != nil {
		return nil, nil, fmt.Errorf("rubick: %s: %w", rows[0].Config.Key(), err)
	}
	return newModel(rows, post), ms, nil
}

// Collect returns the usable rows of data, with repeats merged, in canonical order, and the number of other
// rows. It leaves out rows that the family does not cover, with a warning. Errors are those of data and ctx, or
// report several keys.
func Collect(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (ms []spec.Measurement, left int, warnings []string, err error) {
	for m, err := range data {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, 0, nil, fmt.Errorf("rubick: reading measurements: %w", err)
		}
		if !perfmodel.Usable(m) {
			left++
			continue
		}
		if len(ms) > 0 && m.Config.Key() != ms[0].Config.Key() {
			return nil, 0, nil, fmt.Errorf("rubick: rows of %s and of %s, want one job type", ms[0].Config.Key(), m.Config.Key())
		}
		if err := coversConfig(&m.Config, m.Config.Key()); err != nil {
			left++
			warnings = append(warnings, fmt.Sprintf("%v: left out one row", err))
			continue
		}
		ms = append(ms, m)
	}
	return perfmodel.MergeRepeats(ms), left, warnings, nil
}

// enough returns an error wrapping perfmodel.ErrTooFewPoints if merged rows do not identify the parameters;
// left is the number of rows that were left out.
func enough(ms []spec.Measurement, left int) error {
	switch len(ms) {
	case 0:
		return fmt.Errorf("rubick: no usable row, %d left out: measure at least two configurations: %w",
			left, perfmodel.ErrTooFewPoints)
	case 1:
		return fmt.Errorf("rubick: %s: only one configuration (%s on %s): its compute time and fixed cost cannot be separated,"+
			" measure another device count or batch: %w",
			ms[0].Config.Key(), ms[0].Config.Plan, ms[0].Config.Shape.Devices, perfmodel.ErrTooFewPoints)
	}
	return nil
}

func rowsOf(ms []spec.Measurement) []row {
	rows := make([]row, len(ms))
	for i, m := range ms {
		rows[i] = row{m.Config, m.MedianStepSec()}
	}
	return rows
}

// thin returns n evenly spaced elements of ms.
func thin(ms []spec.Measurement, n int) []spec.Measurement {
	out := make([]spec.Measurement, n)
	for i := range out {
		out[i] = ms[i*(len(ms)-1)/(n-1)]
	}
	return out
}

// splitEvidence is the evidence, in nats, with which a reading of pipelines as fed sample by sample replaces
// the recorded micro-batches.
const splitEvidence = 1

// fitBest fits rows with their recorded plans. If a pipeline has one micro-batch of several samples, it also
// fits them as if fed sample by sample, and returns the better fit.
func fitBest(ctx context.Context, rows []row) (*posterior, error) {
	plain, split, err := fitReadings(ctx, rows, splittable(rows))
	if err != nil {
		return nil, err
	}
	return likelierReading(plain, split), nil
}

// fitReadings fits rows with their recorded plans and, if both is set, as if fed sample by sample. split is nil
// if that has no finite fit. The error is that of ctx, or wraps perfmodel.ErrNotFinite.
func fitReadings(ctx context.Context, rows []row, both bool) (plain, split *posterior, err error) {
	plain, err = fitRows(ctx, rows, false)
	if err != nil || !both {
		return plain, nil, err
	}
	if split, err = fitRows(ctx, rows, true); errors.Is(err, perfmodel.ErrNotFinite) {
		return plain, nil, nil
	}
	return plain, split, err
}

// likelierReading returns split if the rows are sufficient evidence for it, else plain.
func likelierReading(plain, split *posterior) *posterior {
	if split != nil && split.loss < plain.loss-splitEvidence {
		return split
	}
	return plain
}

// splittable reports whether rows have pipelines, all of them with one micro-batch, and one with several
// samples: the true number of micro-batches may then be unrecorded. Pacer's own worker always records it.
func splittable(rows []row) bool {
	any := false
	for _, r := range rows {
		p := r.Config.Plan.Normal()
		if p.PP > 1 && (p.AccumSteps > 1 || r.Config.Framework == spec.FrameworkWorker) {
			return false
		}
		any = any || p.PP > 1 && p.MicroBatch > 1
	}
	return any
}

func newModel(rows []row, post *posterior) *Model {
	m := &Model{key: rows[0].Config.Key(), rows: rows, post: post}
	m.by = "rubick: " + m.key.String()
	for i := range rows {
		m.shown.add(&post.terms[i])
	}
	return m
}

// Predict implements perfmodel.Predictor. It warns about features that no fitted row has and about sizes more
// than a factor of two outside theirs.
func (m *Model) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if err := cmp.Or(perfmodel.NotAlone("rubick", &c), m.covers(&c)); err != nil {
		return spec.Prediction{}, err
	}
	t := newTerms(&c, m.post.split)
	logSec, half, unseen := m.interval(&t)
	rate := float64(c.Plan.GlobalBatch()) * math.Exp(-logSec)
	spread := math.Exp(half)
	p := spec.Prediction{Throughput: rate, Lo: rate / spread, Hi: rate * spread, By: m.by}
	if !(p.Lo > 0) || math.IsInf(p.Hi, 0) {
		return spec.Prediction{}, fmt.Errorf("rubick: %s: %s has no finite step time: %w", m.key, c.Plan, perfmodel.ErrNotCovered)
	}
	if unseen != 0 {
		p.Warnings = m.warn(unseen)
	}
	return p, nil
}

// interval returns ln T of a configuration, half the width of its 90 % interval, and the features that no
// fitted row has.
func (m *Model) interval(t *configTerms) (logSec, half float64, unseen featureSet) {
	logSec, half = m.post.predict(t)
	unseen = m.shown.lacks(t)
	return logSec, math.Sqrt(half*half + unseen.widening()), unseen
}

// covers returns an error wrapping perfmodel.ErrNotCovered if the model does not predict c.
func (m *Model) covers(c *spec.Config) error {
	return coversConfig(c, m.key)
}

func coversConfig(c *spec.Config, key spec.Key) error {
	if k := c.Key(); k != key {
		return fmt.Errorf("rubick: fitted to %s, not %s: %w", key, k, perfmodel.ErrNotCovered)
	}
	p := c.Plan.Normal()
	if err := p.CheckBounds(); err != nil {
		return fmt.Errorf("rubick: %w: %w", err, perfmodel.ErrNotCovered)
	}
	if p.ParamServers > 0 || p.Async {
		return fmt.Errorf("rubick: plan %s has parameter servers: %w", c.Plan, perfmodel.ErrNotCovered)
	}
	if p.Shard > 0 || p.Schedule.ZeroBubble() {
		return fmt.Errorf("rubick: plan %s shards in groups or has a zero-bubble schedule: %w", c.Plan, perfmodel.ErrNotCovered)
	}
	if n := c.Shape.Total(); n != 0 && n != c.Plan.Devices() {
		return fmt.Errorf("rubick: plan %s is for %d devices, shape %s has %d: %w",
			c.Plan, c.Plan.Devices(), c.Shape.Devices, n, perfmodel.ErrNotCovered)
	}
	return nil
}

// warn returns one warning per feature. It keeps the slice; callers may append to it.
func (m *Model) warn(s featureSet) []error {
	if w, ok := m.warnings.Load(s); ok {
		return w.([]error)
	}
	var w []error
	for _, why := range s.unseen() {
		w = append(w, fmt.Errorf("rubick: extrapolates: %s", why))
	}
	w = slices.Clip(w)
	m.warnings.Store(s, w)
	return w
}

// fileRecord is the stored form of a fitted model. Log is the mode of the parameters' logarithms; the rest
// follows from the rows.
type fileRecord struct {
	Version int                `json:"version"`
	Split   bool               `json:"split,omitempty"`
	Log     map[string]float64 `json:"log_params"`
	Rows    []row              `json:"rows"`
}

const fileVersion = 1

// MarshalBinary implements encoding.BinaryMarshaler.
func (m *Model) MarshalBinary() ([]byte, error) {
	f := fileRecord{Version: fileVersion, Split: m.post.split, Rows: m.rows, Log: map[string]float64{}}
	for i, p := range priors {
		f.Log[p.name] = m.post.mean[i]
	}
	return json.Marshal(f)
}

// Load reads what MarshalBinary wrote. It returns an error for values that no fit produces.
func Load(b []byte) (perfmodel.Fitted, error) {
	var f fileRecord
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("rubick: reading a fitted model: %w", err)
	}
	if f.Version != fileVersion {
		return nil, fmt.Errorf("rubick: fitted model has version %d, want %d: fit the model again", f.Version, fileVersion)
	}
	if len(f.Rows) == 0 || len(f.Rows) > maxRows || len(f.Log) != rbN {
		return nil, fmt.Errorf("rubick: fitted model with %d rows and %d parameters, want 1..%d and %d",
			len(f.Rows), len(f.Log), maxRows, rbN)
	}
	var at vec
	for i, p := range priors {
		v, ok := f.Log[p.name]
		if !ok || math.Abs(v) > maxLog {
			return nil, fmt.Errorf("rubick: fitted model has %s = %g, want a logarithm within ±%d", p.name, v, maxLog)
		}
		at[i] = v
	}
	for _, r := range f.Rows {
		if !(r.Sec > 0) || math.IsInf(r.Sec, 0) {
			return nil, fmt.Errorf("rubick: fitted model has a row at %g s, want a positive time", r.Sec)
		}
		if err := coversConfig(&r.Config, f.Rows[0].Config.Key()); err != nil {
			return nil, fmt.Errorf("rubick: fitted model: %w", err)
		}
	}
	s, err := newSearch(f.Rows, f.Split)
	if err == nil {
		err = s.complete(at)
	}
	if err != nil {
		return nil, fmt.Errorf("rubick: fitted model of %s: %w", f.Rows[0].Config.Key(), err)
	}
	return newModel(f.Rows, &s.posterior), nil
}
