package family

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// rubickModel is the fitted performance model of one job type.
type rubickModel struct {
	key   spec.Key
	rows  []rubickRow // fitted, in canonical order
	post  *rubickPosterior
	shown rubickShown // by the rows

	by       string
	warnings sync.Map // rubickSeen -> []error: what such a configuration lacks
}

// fitRubick fits the rows of one key. Repeats of a configuration count as one
// row, at the median of their times. The Card's errors are leave-one-out, linearised
// at the fit.
func fitRubick(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	ms, left, warnings, err := collectRubick(ctx, data)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	m, kept, err := fitRubickTo(ms, left)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	if len(kept) < len(ms) {
		warnings = append(warnings, fmt.Sprintf("rubick: fitted on %d of %d configurations, evenly spread", len(kept), len(ms)))
	}
	card := m.card(kept)
	card.NLeftOut = left
	card.Warnings = append(card.Warnings, warnings...)
	return m, card, nil
}

// fitRubickTo fits what collectRubick returns and tells which rows it took.
func fitRubickTo(ms []spec.Measurement, left int) (m *rubickModel, kept []spec.Measurement, err error) {
	if err := enoughRubick(ms, left); err != nil {
		return nil, nil, err
	}
	if len(ms) > rubickMaxRows {
		ms = thin(ms, rubickMaxRows)
	}
	rows := rubickRows(ms)
	post, err := fitRubickBest(rows)
	if err != nil {
		return nil, nil, fmt.Errorf("rubick: %s: %w", rows[0].Config.Key(), err)
	}
	return newRubickModel(rows, post), ms, nil
}

// collectRubick returns the usable rows of data, repeats merged, in canonical
// order, and how many were left out. Rows no model would predict are left out
// with a warning.
func collectRubick(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (ms []spec.Measurement, left int, warnings []string, err error) {
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
		if err := rubickCovers(&m.Config, m.Config.Key()); err != nil {
			left++
			warnings = append(warnings, fmt.Sprintf("%v: a row is left out", err))
			continue
		}
		ms = append(ms, m)
	}
	return perfmodel.MergeRepeats(ms), left, warnings, nil
}

// enoughRubick returns an error wrapping perfmodel.ErrTooFewPoints if merged rows
// identify nothing; left is how many others there were.
func enoughRubick(ms []spec.Measurement, left int) error {
	switch len(ms) {
	case 0:
		return fmt.Errorf("rubick: no usable row, %d left out: nothing is identifiable, measure at least two configurations: %w",
			left, perfmodel.ErrTooFewPoints)
	case 1:
		return fmt.Errorf("rubick: %s: 1 configuration (%s on %s): its compute time and fixed cost cannot be told apart,"+
			" measure another device count or batch: %w",
			ms[0].Config.Key(), ms[0].Config.Plan, ms[0].Config.Shape.Devices, perfmodel.ErrTooFewPoints)
	}
	return nil
}

func rubickRows(ms []spec.Measurement) []rubickRow {
	rows := make([]rubickRow, len(ms))
	for i, m := range ms {
		rows[i] = rubickRow{m.Config, m.MedianStepSec()}
	}
	return rows
}

// thin returns n of ms, evenly spread.
func thin(ms []spec.Measurement, n int) []spec.Measurement {
	out := make([]spec.Measurement, n)
	for i := range out {
		out[i] = ms[i*(len(ms)-1)/(n-1)]
	}
	return out
}

// splitEvidence is how much likelier, in nats, rows must be with pipelines fed
// sample by sample before their plans are not taken at their word.
const splitEvidence = 1

// fitRubickBest fits rows with their plans as written and, where a pipeline is
// said to be fed one micro-batch of several samples, fed sample by sample too.
func fitRubickBest(rows []rubickRow) (*rubickPosterior, error) {
	plain, split, err := fitRubickReadings(rows, splittable(rows))
	if err != nil {
		return nil, err
	}
	return likelierReading(plain, split), nil
}

// fitRubickReadings fits rows with their plans as written and, if both are
// wanted and it can be done, fed sample by sample; else split is nil.
func fitRubickReadings(rows []rubickRow, both bool) (plain, split *rubickPosterior, err error) {
	plain, err = fitRubickRows(rows, false)
	if err != nil || !both {
		return plain, nil, err
	}
	if split, err = fitRubickRows(rows, true); err != nil {
		split = nil
	}
	return plain, split, nil
}

// likelierReading returns split if the rows tell so, else plain.
func likelierReading(plain, split *rubickPosterior) *rubickPosterior {
	if split != nil && split.loss < plain.loss-splitEvidence {
		return split
	}
	return plain
}

// splittable reports whether there are pipelines, all with one micro-batch, and
// one of them has samples to split: a sign that nobody recorded the splitting.
// Pacer's own worker records it.
func splittable(rows []rubickRow) bool {
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

func newRubickModel(rows []rubickRow, post *rubickPosterior) *rubickModel {
	m := &rubickModel{key: rows[0].Config.Key(), rows: rows, post: post}
	m.by = "rubick: " + m.key.String()
	for i := range rows {
		m.shown.add(&post.terms[i])
	}
	return m
}

// Predict implements perfmodel.Predictor. It warns of features no fitted row has
// and of sizes more than a factor of two outside theirs.
func (m *rubickModel) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if err := m.covers(&c); err != nil {
		return spec.Prediction{}, err
	}
	t := newRubickTerms(&c, m.post.split)
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

// interval returns ln T of a configuration, half the width of its 90 %
// interval, and what no fitted row has shown of it.
func (m *rubickModel) interval(t *rubickTerms) (logSec, half float64, unseen rubickSeen) {
	logSec, half = m.post.predict(t)
	unseen = m.shown.lacks(t)
	return logSec, math.Sqrt(half*half + unseen.widening()), unseen
}

// covers returns an error wrapping ErrNotCovered for a Config this model says
// nothing about.
func (m *rubickModel) covers(c *spec.Config) error {
	return rubickCovers(c, m.key)
}

func rubickCovers(c *spec.Config, key spec.Key) error {
	if k := c.Key(); k != key {
		return fmt.Errorf("rubick: fitted to %s, not %s: %w", key, k, perfmodel.ErrNotCovered)
	}
	p := c.Plan.Normal()
	if err := checkDegrees(&p); err != nil {
		return fmt.Errorf("rubick: %w", err)
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

// warn returns one warning per feature, made once. Callers may append to it.
func (m *rubickModel) warn(s rubickSeen) []error {
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

// rubickFile is a fitted model on disk. Parameters are the mode's logarithms;
// the rest follows from the rows.
type rubickFile struct {
	Version int                `json:"version"`
	Split   bool               `json:"split,omitempty"`
	Log     map[string]float64 `json:"log_params"`
	Rows    []rubickRow        `json:"rows"`
}

const rubickVersion = 1

// MarshalBinary implements encoding.BinaryMarshaler.
func (m *rubickModel) MarshalBinary() ([]byte, error) {
	f := rubickFile{Version: rubickVersion, Split: m.post.split, Rows: m.rows, Log: map[string]float64{}}
	for i, p := range rubickPriors {
		f.Log[p.name] = m.post.mean[i]
	}
	return json.Marshal(f)
}

// loadRubick reads what MarshalBinary wrote.
func loadRubick(b []byte) (perfmodel.Fitted, error) {
	var f rubickFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("rubick: reading a fitted model: %w", err)
	}
	if f.Version != rubickVersion {
		return nil, fmt.Errorf("rubick: fitted model of version %d, want %d: fit again", f.Version, rubickVersion)
	}
	if len(f.Rows) == 0 || len(f.Rows) > rubickMaxRows || len(f.Log) != rbN {
		return nil, fmt.Errorf("rubick: fitted model with %d rows and %d parameters, want 1..%d and %d",
			len(f.Rows), len(f.Log), rubickMaxRows, rbN)
	}
	var at rubickVec
	for i, p := range rubickPriors {
		v, ok := f.Log[p.name]
		if !ok || math.Abs(v) > rubickMaxLog {
			return nil, fmt.Errorf("rubick: fitted model has %s = %g, want a logarithm within ±%d", p.name, v, rubickMaxLog)
		}
		at[i] = v
	}
	for _, r := range f.Rows {
		if !(r.Sec > 0) || math.IsInf(r.Sec, 0) {
			return nil, fmt.Errorf("rubick: fitted model has a row at %g s, want a positive time", r.Sec)
		}
		if err := rubickCovers(&r.Config, f.Rows[0].Config.Key()); err != nil {
			return nil, fmt.Errorf("rubick: fitted model: %w", err)
		}
	}
	s, err := newRubickSearch(f.Rows, f.Split)
	if err == nil {
		err = s.conclude(at)
	}
	if err != nil {
		return nil, fmt.Errorf("rubick: fitted model of %s: %w", f.Rows[0].Config.Key(), err)
	}
	return newRubickModel(f.Rows, &s.rubickPosterior), nil
}

// card describes the fit to ms, which m.rows were made of.
func (m *rubickModel) card(ms []spec.Measurement) perfmodel.Card {
	c := perfmodel.Card{Key: m.key, Family: "rubick", NFit: len(ms), NHeldOut: len(ms),
		Params: map[string]perfmodel.Param{}, DataHash: perfmodel.HashRows(ms)}
	for i, p := range rubickPriors {
		c.Params[p.name] = perfmodel.Param{Value: m.post.e[i], Unit: p.unit}
	}
	ape, covered := m.post.leaveOneOut()
	c.MAPE, c.P95APE = perfmodel.ErrorSummary(ape)
	c.MAPEAll, c.Coverage = c.MAPE, covered
	if weak := m.post.unmoved(); len(weak) > 0 {
		c.Warnings = append(c.Warnings, "rubick: these rows say little about "+strings.Join(weak, ", ")+": kept near the prior")
	}
	if m.post.split {
		c.Warnings = append(c.Warnings, "rubick: pipelines are read as fed sample by sample, which fits better than one micro-batch")
	}
	if assumed := m.post.terms[0].guess.names(); len(assumed) > 0 {
		c.Warnings = append(c.Warnings, "rubick: not known, assumed: "+strings.Join(assumed, ", "))
	}
	return c
}

// leaveOneOut returns the absolute relative error of every row's step time as
// predicted from the others, and the share of rows inside their 90 % interval.
func (p *rubickPosterior) leaveOneOut() (ape []float64, covered float64) {
	off, sd := p.leftOut()
	inside := 0
	for i, e := range off {
		ape = append(ape, math.Abs(math.Expm1(-e)))
		if math.Abs(e) <= p.half*sd[i] {
			inside++
		}
	}
	return ape, float64(inside) / float64(max(len(off), 1))
}

// leftOut returns measured - predicted ln T of every row as predicted from the
// others, and its standard deviation: for a linear Gaussian model with
// covariance V of the rows, residual i is [V⁻¹r]i/[V⁻¹]ii and its variance
// 1/[V⁻¹]ii (Rasmussen and Williams, Gaussian Processes for Machine Learning,
// 2006, section 5.4.2).
func (p *rubickPosterior) leftOut() (off, deviation []float64) {
	_, sd := rubickBelief(&p.terms[0])
	n := len(p.terms)
	v, ok := newCholesky(n, func(i, j int) float64 {
		s := rubickCovariance(&p.terms[i], &p.terms[j], i == j)
		for a := range sd {
			s += p.jac[i][a] * p.jac[j][a] * sd[a] * sd[a]
		}
		return s
	})
	if !ok {
		return nil, nil
	}
	resid := p.linearResiduals()
	v.solve(resid)
	for i, d := range v.inverseDiagonal() {
		off, deviation = append(off, resid[i]/d), append(deviation, 1/math.Sqrt(d))
	}
	return off, deviation
}

// linearResiduals returns measured - predicted ln T of every row at the prior
// mean, with the formula linearised at the fit.
func (p *rubickPosterior) linearResiduals() []float64 {
	prior, _ := rubickBelief(&p.terms[0])
	out := slices.Clone(p.weight)
	p.residual.multiply(out) // undoes the solve
	for i := range out {
		for a := range prior {
			out[i] += p.jac[i][a] * (p.mean[a] - prior[a])
		}
	}
	return out
}

// unmoved names the parameters whose standard deviation the rows lowered by
// less than a fifth, though some row depends on them.
func (p *rubickPosterior) unmoved() []string {
	_, sd := rubickBelief(&p.terms[0])
	var out []string
	for a := range sd {
		var unit rubickVec
		unit[a] = 1
		p.precise.forward(unit[:])
		uses := slices.ContainsFunc(p.jac, func(j rubickVec) bool { return j[a] != 0 })
		if uses && math.Sqrt(dot(unit[:], unit[:])) > 0.8*sd[a] {
			out = append(out, rubickPriors[a].name)
		}
	}
	return out
}
