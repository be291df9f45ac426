package pollux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/dataparallel"
	"github.com/pacer-ml/pacer/perfmodel/internal/lbfgsb"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// SiaFamily is the family "sia".
var SiaFamily = perfmodel.Family{
	Name: "sia",
	Doc:  "Pollux's model for each type of accelerator, projected across types by FitSia (Jayaram Subramanya et al., Sia, SOSP 2023)",
	Fit:  fitSiaKey,
	Load: loadSia,
}

// siaFitter fits Pollux's model as Sia does, with a looser stopping rule. This matters: before convergence, the
// parameters predict other times for configurations that were not measured.
var siaFitter = fitter{name: "sia", stop: lbfgsb.Settings{RelDecrease: 1e-5, Gradient: 1e-5}}

// siaModel predicts one model on several types of accelerator. If only one device of a type A was measured, its
// step time is that of a type B with more measurements, at the same replicas, micro-batch and accumulation,
// divided by
//
//	ratio = x(A)/x(B), x = most samples of a step on one device / longest such step
//
// on as few nodes of B as the replicas need, even if the cluster does not have that many.
//
// Source: Jayaram Subramanya et al., "Sia: Heterogeneity-aware, goodput-optimized
// ML-cluster scheduling", SOSP 2023, section 3.3, and its artifact
// siasosp23/artifacts@aaf7a0d for the choice of rows, of B and of nodes. Sia
// projects goodputs; at a given plan these differ by the throughput alone.
// Its pipelines of fixed depth (section 3.4) are not covered.
type siaModel struct {
	Types     []*Model        `json:"types"` // at least one
	Projected []siaProjection `json:"projected,omitempty"`
}

// siaProjection is a type of accelerator that is projected from another type.
type siaProjection struct {
	Job     dataparallel.Job `json:"job"`
	From    string           `json:"from"`     // accelerator with a fitted model
	PerNode int              `json:"per_node"` // devices on a node of From
	Ratio   float64          `json:"ratio"`    // speed relative to From
}

// siaType is the rows of one type of accelerator.
type siaType struct {
	in      dataparallel.Data
	several bool    // rows of several devices
	perNode int     // most devices on one node
	samples float64 // largest number of samples of a step on one device
	longest float64 // longest step on one device, seconds
}

// FitSia fits rows of one model on any types of accelerator. Types with rows of several devices get their own
// model. Types with rows of one device only are projected from the first type of order that has rows of both
// kinds; types that are not in order come last, sorted by name. If no type has rows of several devices, each
// gets its own model, which assumes perfect scaling.
//
// The error wraps perfmodel.ErrTooFewPoints if there is no usable row, or no row of one device to project a
// type from.
func FitSia(ctx context.Context, rows []spec.Measurement, order ...string) (perfmodel.Fitted, error) {
	types, err := siaTypes(ctx, rows)
	if err != nil {
		return nil, err
	}
	names := slices.SortedFunc(maps.Keys(types), func(a, b string) int {
		return cmpPlace(order, a, b)
	})
	m := &siaModel{}
	base := siaBase(types, names)
	for _, name := range names {
		t := types[name]
		if base != "" && !t.several {
			m.Projected = append(m.Projected, projectSia(t, types[base], base))
			continue
		}
		if !t.several && slices.ContainsFunc(names, func(n string) bool { return types[n].several }) {
			return nil, fmt.Errorf("sia: %s: ratio is not identifiable: no type has rows of one and of several devices: %w", t.in.Job.Key, perfmodel.ErrTooFewPoints)
		}
		own, _, err := siaFitter.fitJob(ctx, t.in)
		if err != nil {
			return nil, err
		}
		m.Types = append(m.Types, own)
	}
	if err := m.sameJob(); err != nil {
		return nil, err
	}
	return m, nil
}

// cmpPlace compares a and b by their index in order, then by name.
func cmpPlace(order []string, a, b string) int {
	place := func(s string) int {
		if i := slices.Index(order, s); i >= 0 {
			return i
		}
		return len(order)
	}
	if d := place(a) - place(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// siaTypes groups rows by type of accelerator.
func siaTypes(ctx context.Context, rows []spec.Measurement) (map[string]*siaType, error) {
	out := map[string]*siaType{}
	for key, ms := range perfmodel.GroupByKey(rows) {
		if key.Model != rows[0].Config.Model.Name {
			return nil, fmt.Errorf("sia: rows of %s and of %s, want one model", rows[0].Config.Model.Name, key.Model)
		}
		in, err := dataparallel.Collect(ctx, siaFitter.name, perfmodel.Rows(ms), siaFitter.covers)
		if errors.Is(err, perfmodel.ErrTooFewPoints) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[key.Accelerator] = newSiaType(in)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("sia: no usable row: no parameter is identifiable: %w", perfmodel.ErrTooFewPoints)
	}
	return out, nil
}

func newSiaType(in dataparallel.Data) *siaType {
	t := &siaType{in: in}
	for i := range in.Rows {
		m := &in.Rows[i]
		t.perNode = max(t.perNode, m.Config.Shape.Most())
		if m.Config.Plan.Devices() > 1 {
			t.several = true
			continue
		}
		t.samples = max(t.samples, float64(m.Config.Plan.GlobalBatch()))
		t.longest = max(t.longest, m.MedianStepSec())
	}
	return t
}

// siaBase returns the first type that others can be projected from, "" if there is none.
func siaBase(types map[string]*siaType, names []string) string {
	for _, name := range names {
		if t := types[name]; t.several && t.samples > 0 {
			return name
		}
	}
	return ""
}

func projectSia(t, base *siaType, from string) siaProjection {
	return siaProjection{Job: t.in.Job, From: from, PerNode: base.perNode, Ratio: (t.samples / t.longest) / (base.samples / base.longest)}
}

// sameJob returns an error if jobs of m differ in more than accelerator and precision.
func (m *siaModel) sameJob() error {
	var first dataparallel.Job
	for i, j := range m.jobs() {
		j.Accelerator, j.Precision = "", ""
		if i == 0 {
			first = j
		}
		if j != first {
			return fmt.Errorf("sia: rows of %s and of %s, want one job on all types", m.jobs()[0], m.jobs()[i])
		}
	}
	return nil
}

func (m *siaModel) jobs() (out []dataparallel.Job) {
	for _, t := range m.Types {
		out = append(out, t.Job)
	}
	for _, p := range m.Projected {
		out = append(out, p.Job)
	}
	return out
}

// own returns the model fitted on an accelerator, nil if there is none.
func (m *siaModel) own(accelerator string) *Model {
	i := slices.IndexFunc(m.Types, func(t *Model) bool { return t.Job.Accelerator == accelerator })
	if i < 0 {
		return nil
	}
	return m.Types[i]
}

// Predict implements perfmodel.Predictor. It warns about sizes outside of the rows of the type, or of the type
// it is projected from. The prediction has no interval.
func (m *siaModel) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	for _, p := range m.Projected {
		if p.Job.Accelerator == c.Accelerator.Name {
			return p.predict(&c, m.own(p.From))
		}
	}
	if t := m.own(c.Accelerator.Name); t != nil {
		return t.Predict(ctx, c)
	}
	return spec.Prediction{}, fmt.Errorf("sia: no row of %s: %w", c.Key(), perfmodel.ErrNotCovered)
}

// predict projects the step time of base.
func (p siaProjection) predict(c *spec.Config, base *Model) (spec.Prediction, error) {
	if err := siaFitter.covers(c); err != nil {
		return spec.Prediction{}, err
	}
	if err := p.Job.Covers(siaFitter.name, c); err != nil {
		return spec.Prediction{}, err
	}
	plan := c.Plan.Normal()
	x := newPoint(c, &plan)
	x.Nodes = (x.Replicas + p.PerNode - 1) / p.PerNode
	warnings := base.extrapolates(x)
	if x.Replicas > 1 {
		warnings = append(warnings, fmt.Errorf("sia: extrapolates: several %s are assumed to scale like %s, since only one was measured", p.Job.Accelerator, p.From))
	}
	return dataparallel.Prediction(fmt.Sprintf("sia: %s from %s", p.Job.Key, p.From), c, x.seconds(&base.Params)/p.Ratio, warnings)
}

// fitSiaKey fits the rows of one key.
func fitSiaKey(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	m, card, err := siaFitter.fitKey(ctx, data)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	return &siaModel{Types: []*Model{m}}, card, nil
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (m *siaModel) MarshalBinary() ([]byte, error) { return json.Marshal(m) }

// loadSia reads what MarshalBinary wrote.
func loadSia(b []byte) (perfmodel.Fitted, error) {
	var m siaModel
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("sia: reading a fitted model: %w", err)
	}
	for _, t := range m.Types {
		if t == nil {
			return nil, errors.New("sia: fitted model has a type that is null")
		}
		if err := t.restore(siaFitter); err != nil {
			return nil, err
		}
	}
	for _, p := range m.Projected {
		if m.own(p.From) == nil || p.PerNode < 1 || !(p.Ratio > 0) {
			return nil, fmt.Errorf("sia: fitted model projects %s from %q, %d per node, at ratio %g: want a fitted type and values above 0",
				p.Job.Key, p.From, p.PerNode, p.Ratio)
		}
	}
	if len(m.Types) == 0 {
		return nil, errors.New("sia: fitted model has no type of accelerator")
	}
	if err := m.sameJob(); err != nil {
		return nil, err
	}
	return &m, nil
}
