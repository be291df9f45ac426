package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Target is what a request is about: a model on an accelerator, and the
// circumstances its measurements were taken in, if there are any. Immutable.
type Target struct {
	model       spec.Model
	seqLen      int
	accelerator spec.Accelerator
	node        spec.Node
	link        spec.Link
	framework   string
	precision   spec.Precision
	card        *perfmodel.Card // best fitted performance model, nil if there is none

	key    spec.Key // canonical, of card; zero for a model of the request
	stored bool     // only the store knows the model or the accelerator
}

// Card returns that of the best fitted performance model, nil if there is none.
func (t *Target) Card() *perfmodel.Card { return t.card }

// MeasuredIn reports whether new measurements of keys may change t. keys are CanonicalKeys.
func (t *Target) MeasuredIn(keys map[spec.Key]bool) bool {
	return t.stored || t.card != nil && keys[t.key]
}

// FittedBy reports whether performance models fitted to keys may change t. keys are CanonicalKeys.
func (t *Target) FittedBy(keys map[spec.Key]bool) bool { return keys[t.key] }

// TargetKey returns the fields of q that decide its Target.
func (q Request) TargetKey() Request {
	_, accelerator := catalog.SplitCount(q.Accelerator)
	return Request{Model: q.Model, Accelerator: accelerator, Chip: q.Chip, Node: q.Node, Adapter: q.Adapter, Packed: q.Packed, Imbalance: q.Imbalance, Framework: q.Framework, Stack: q.Stack, Date: q.Date,
		Family: cmp.Or(q.Family, Auto), Network: q.Network}
}

// Target finds the model and accelerator that q names, in the catalog or in the
// store. q passes Check. A name that fitted performance models carry wins over
// the catalog's. Only the fields that TargetKey keeps are read.
func (r *Resolver) Target(ctx context.Context, q *Request) (*Target, error) {
	t := &Target{}
	machineMeasured, err := r.findMachine(ctx, q, t)
	if err != nil {
		return nil, err
	}
	modelMeasured, unknown, err := r.findNetwork(ctx, q, t)
	if err != nil {
		return nil, err
	}
	if t.stored = machineMeasured || modelMeasured; t.stored && q.Chip == (Chip{}) {
		if err := t.measuredAt(ctx, r, q, machineMeasured); err != nil {
			return nil, err
		}
	}
	if t.card != nil {
		err = t.fromMeasurements(ctx, r, q)
		if errors.Is(err, reader.ErrLocked) && q.Family == Auto && unknown == nil && !t.stored {
			r.warn(fmt.Errorf("%w; answered from the catalog alone, not by the model fitted to %s", err, t.card.Key))
			t.card, err = nil, nil
		}
	}
	if err == nil {
		t.framework, err = r.stackText(ctx, q, t.framework)
	}
	return t, err
}

// findMachine fills in accelerator, node and link. measured reports that only the
// store has the accelerator.
func (r *Resolver) findMachine(ctx context.Context, q *Request, t *Target) (measured bool, err error) {
	if q.Chip != (Chip{}) {
		t.accelerator, t.node = q.Chip.Accelerator, q.Chip.Node
		if q.Node != "" {
			t.node, err = q.node(t.accelerator)
		}
		t.link = t.node.Link
		return false, err
	}
	_, name := catalog.SplitCount(q.Accelerator)
	if t.accelerator, measured, err = r.FindAccelerator(ctx, name); err != nil {
		return measured, err
	}
	if t.node, err = q.node(t.accelerator); q.Node == "" && err == nil {
		if n, err := catalog.Node(name); err == nil && n.Accelerator == t.accelerator.Name { // "DGX H100" for an accelerator
			t.node = n
		}
	}
	t.link = t.node.Link
	return measured, err
}

// findNetwork fills in the model and the card of its best fitted performance model.
// measured reports that only the store has the model. unknown says that neither the
// catalog nor the store has it; a fitted performance model of that name stands for it.
func (r *Resolver) findNetwork(ctx context.Context, q *Request, t *Target) (measured bool, unknown, err error) {
	adapter, err := spec.ParseAdapter(q.Adapter)
	if err != nil {
		return false, nil, err
	}
	if t.model = q.Network; !q.custom() {
		t.model, measured, unknown = r.findModel(ctx, q.Model)
	}
	if bare, kind := catalog.SplitAdapter(q.Model); adapter.Kind != spec.FullTraining && unknown == nil && kind != "" && t.model.Adapter.Kind == kind {
		if adapter.Kind != kind {
			return false, nil, &FieldError{Field: "adapter", Value: q.Adapter, Why: "contradicts the model " + q.Model}
		}
		t.model, measured, unknown = r.findModel(ctx, bare) // "Llama 3 8B LoRA" with a rank of its own
	}
	key := spec.Key{Model: spec.Model{Name: q.Model}.Adapted(adapter).WithPacked(q.Packed).WithImbalance(q.Imbalance).Name, Accelerator: t.accelerator.Name}
	if unknown == nil {
		bare := t.model
		if adapter.Kind != spec.FullTraining {
			bare.Adapter, t.model = adapter, t.model.Adapted(adapter)
		}
		if err := bare.CheckAdapter(); err != nil {
			return measured, nil, &FieldError{Field: "adapter", Value: bare.Adapter.String(), Why: err.Error()}
		}
		if q.Packed > 0 && !t.model.HasShape() {
			return measured, nil, &FieldError{Field: "packed", Value: q.Packed, Why: "needs a model with known layers and widths, which " + t.model.Name + " is not"}
		}
		t.model = t.model.WithPacked(q.Packed).WithImbalance(q.Imbalance)
		if err := t.model.CheckImbalance(); err != nil && q.Imbalance != 0 {
			return measured, nil, &FieldError{Field: "imbalance", Value: q.Imbalance, Err: err}
		}
		key.Model = t.model.Name
	}
	if q.unmeasured() {
		return measured, unknown, cmp.Or(unknown, q.checkUnfitted(t))
	}
	t.key = CanonicalKey(key)
	if t.card, err = r.BestCard(key, q.Family); err == nil && t.card == nil {
		err = unknown
	}
	return measured, unknown, err
}

// checkUnfitted reports a family that needs measurements, since t has none.
func (q *Request) checkUnfitted(t *Target) error {
	if q.Family == Auto {
		return nil
	}
	fam, err := family.Lookup(q.Family)
	if err != nil {
		return &FieldError{Field: "family", Value: q.Family, Err: err}
	}
	if fam.Unfitted == nil {
		subject, name := "model", t.model.Name
		if !q.custom() {
			subject, name = "device", t.accelerator.Name
		}
		return &FieldError{Field: "family", Value: q.Family, NoAnswer: true,
			Err: fmt.Errorf("family %s needs measurements of the %s, and %s is not one of the store's; auto, analytic and hybrid answer without", q.Family, subject, name)}
	}
	return nil
}

// node returns the machine q names, else the usual one of a.
func (q *Request) node(a spec.Accelerator) (spec.Node, error) {
	if q.Node == "" {
		return NodeOf(a), nil
	}
	n, err := catalog.Node(q.Node)
	if err == nil && n.Accelerator != "" && n.Accelerator != a.Name {
		err = &FieldError{Field: "node", Value: n.Name, Why: fmt.Sprintf("has devices of type %s, not %s", n.Accelerator, a.Name)}
	}
	return n, err
}

// NodeOf returns the machine that devices of type a usually come in.
func NodeOf(a spec.Accelerator) spec.Node {
	if n, ok := catalog.NodeFor(a.Name); ok {
		return n
	}
	return spec.Node{Name: "generic", Accelerator: a.Name, Devices: 8}
}

// BestCard returns the card of k with the smallest held-out error, nil if there is
// none. A fit to ranks alone comes after those to whole steps. want is a family, or Auto for those that beat the analytic model where both
// were scored. The model may have any of its names.
func (r *Resolver) BestCard(k spec.Key, want string) (*perfmodel.Card, error) {
	if want == "analytic" {
		return nil, nil
	}
	cards, canonical := r.Cards(), CanonicalKey(k)
	var best *perfmodel.Card
	for i, c := range cards {
		if CanonicalKey(c.Key) != canonical || want != Auto && c.Family != want {
			continue
		}
		if want == Auto && !c.BeatsUnfitted() {
			continue
		}
		if best == nil || c.MAPEAlone == 0 && (best.MAPEAlone > 0 || c.MAPE < best.MAPE) {
			best = &cards[i]
		}
	}
	if best == nil && want != Auto {
		fam, err := family.Lookup(want)
		if err != nil {
			return nil, &FieldError{Field: "family", Value: want, Err: err}
		}
		if fam.Unfitted == nil {
			return nil, noCard(cards, want, k)
		}
	}
	return best, nil
}

// noCard is the error of a key without a fitted model; it names the others.
func noCard(cards []perfmodel.Card, fam string, k spec.Key) error {
	var known []string
	for _, c := range cards {
		if c.Family == fam {
			known = append(known, c.Key.String())
		}
	}
	slices.Sort(known)
	hint := "none yet: run pacer fit --family " + fam
	if len(known) > 0 {
		hint = strings.Join(known, "; ")
	}
	return &FieldError{Field: "family", Value: fam, NoAnswer: true, Err: fmt.Errorf("no %s model is fitted for %s (fitted: %s)", fam, k, hint)}
}

// fromMeasurements fills t from the stored measurements of its card: the model
// as they describe it, and what they all have in common.
func (t *Target) fromMeasurements(ctx context.Context, r *Resolver, q *Request) error {
	rows, err := r.KeyRows(ctx, CanonicalKeys([]spec.Key{t.card.Key}))
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s has a fitted model but no measurement in the store: fit again", t.card.Key)
	}
	known := t.model // as the catalog has it, zero if it does not
	t.model = rows[0].Config.Model
	t.model.Name = t.card.Model                           // the fitted model accepts no other
	t.model.SeqLen = cmp.Or(t.model.SeqLen, known.SeqLen) // some sources do not print it
	t.seqLen = Common(rows, func(c spec.Config) int { return c.SeqLen })
	t.framework = Common(rows, func(c spec.Config) string { return c.Framework })
	t.precision = Common(rows, func(c spec.Config) spec.Precision { return c.Plan.Precision })
	if link := Common(rows, func(c spec.Config) spec.Link { return c.Link }); link != (spec.Link{}) && q.Node == "" {
		t.link = link
	}
	return nil
}

// measuredAt fills in the circumstances of the closest measurements: those of the
// model on the accelerator. Without any, and if machine says that only the store
// knows the accelerator, all measurements on it count.
func (t *Target) measuredAt(ctx context.Context, r *Resolver, q *Request, machine bool) error {
	rows, err := r.Rows(ctx, reader.Filter{Accelerators: []string{t.accelerator.Name}})
	rows = slices.DeleteFunc(rows, spec.Measurement.Quarantined)
	if err != nil || len(rows) == 0 {
		return err
	}
	if machine && q.Node == "" {
		t.link = Common(rows, func(c spec.Config) spec.Link { return c.Link })
		t.node = spec.Node{Name: "measured", Accelerator: t.accelerator.Name, Devices: mostOnNode(rows), Link: t.link}
	}
	model := catalog.CanonicalModel(t.model.Name)
	isOther := func(m spec.Measurement) bool { return catalog.CanonicalModel(m.Config.Model.Name) != model }
	if own := slices.DeleteFunc(slices.Clone(rows), isOther); len(own) > 0 {
		rows = own
		t.seqLen = Common(rows, func(c spec.Config) int { return c.SeqLen })
	} else if !machine {
		return nil
	}
	t.framework = Common(rows, func(c spec.Config) string { return c.Framework })
	t.precision = Common(rows, func(c spec.Config) spec.Precision { return c.Plan.Precision })
	return nil
}

// mostOnNode returns the most devices rows have on one node.
func mostOnNode(rows []spec.Measurement) int {
	n := 0
	for _, r := range rows {
		n = max(n, r.Config.Shape.Most())
	}
	return n
}

// Common returns the value that all rows share, zero if they differ. There must be
// at least one row.
func Common[T comparable](rows []spec.Measurement, of func(spec.Config) T) T {
	v := of(rows[0].Config)
	for _, m := range rows[1:] {
		if of(m.Config) != v {
			var none T
			return none
		}
	}
	return v
}
