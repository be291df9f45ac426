package ask

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
	"github.com/pacer-ml/pacer/profiler/store"
)

// Subject is what a planning question is about: a model on an accelerator, and
// the circumstances its measurements were taken in, if there are any. It does
// not change.
type Subject struct {
	model       spec.Model
	seqLen      int
	accelerator spec.Accelerator
	node        spec.Node
	link        spec.Link
	framework   string
	precision   spec.Precision
	card        *perfmodel.Card // best fitted performance model, nil if there is none

	key    spec.Key // card was looked up by, zero where the model was brought along
	stored bool     // the store alone knows the model or the accelerator
}

// Card returns that of the best fitted performance model, nil if there is none.
func (s *Subject) Card() *perfmodel.Card { return s.card }

// MeasuredIn reports whether measurements of keys may change s.
func (s *Subject) MeasuredIn(keys []spec.Key) bool {
	return s.stored || s.card != nil && anySame(s.card.Key, keys)
}

// FittedBy reports whether performance models fitted to keys may change s.
func (s *Subject) FittedBy(keys []spec.Key) bool { return anySame(s.key, keys) }

func anySame(k spec.Key, keys []spec.Key) bool {
	return slices.ContainsFunc(keys, func(other spec.Key) bool { return SameKey(k, other) })
}

// SameKey reports whether performance models of either key answer for both: the
// model's name may be in any case.
func SameKey(a, b spec.Key) bool {
	return strings.EqualFold(a.Model, b.Model) && a.Accelerator == b.Accelerator
}

// About finds the model and accelerator that q, which passes Check, names, in
// the catalog or in the store. A name that fitted performance models are known
// under wins over the catalog's. Of q nothing is looked at but what AboutOnly
// leaves.
func (d *Desk) About(ctx context.Context, q *Question) (*Subject, error) {
	s, err := d.subject(ctx, q)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// AboutOnly returns q without what changes nothing about its Subject: questions
// that are equal then have the same.
func (q Question) AboutOnly() Question {
	return Question{Model: q.Model, Accelerator: q.Accelerator, Node: q.Node, Framework: q.Framework, Family: cmp.Or(q.Family, Auto), Network: q.Network}
}

func (d *Desk) subject(ctx context.Context, q *Question) (Subject, error) {
	var s Subject
	a, ownMachine, err := d.FindAccelerator(ctx, q.Accelerator)
	if err != nil {
		return s, err
	}
	s.accelerator = a
	if s.node, err = q.node(a); err != nil {
		return s, err
	}
	s.link, s.stored = s.node.Link, ownMachine
	if q.brought() {
		return s, s.bring(ctx, d, q, ownMachine)
	}
	m, ownModel, unknown := d.model(ctx, q.Model)
	name := q.Model
	if ownModel {
		name = m.Name
	}
	s.model, s.stored = m, ownMachine || ownModel
	s.key = spec.Key{Model: name, Accelerator: a.Name}
	if s.card, err = d.BestCard(s.key, q.Family); err != nil {
		return s, err
	}
	if s.card == nil && unknown != nil {
		return s, unknown
	}
	if ownMachine || ownModel {
		if err := s.measuredAt(ctx, d, q, ownMachine); err != nil {
			return s, err
		}
	}
	if s.card != nil {
		err = s.fromMeasurements(ctx, d, q)
		if errors.Is(err, store.ErrLocked) && q.Family == Auto && unknown == nil && !ownMachine && !ownModel {
			d.warn(fmt.Errorf("%w; answered from the catalog alone, not by the model fitted to %s", err, s.card.Key))
			s.card, err = nil, nil
		}
	}
	if q.Framework != "" {
		s.framework = q.Framework
	}
	return s, err
}

// bring fills s in for a model nobody here has seen. machine is whether the
// accelerator is known from measurements alone.
func (s *Subject) bring(ctx context.Context, d *Desk, q *Question, machine bool) error {
	s.model = q.Network
	if q.Family != Auto {
		fam, err := family.Lookup(q.Family)
		if err != nil {
			return &FieldError{Field: "family", Value: q.Family, Err: err}
		}
		if fam.Unfitted == nil {
			return &FieldError{Field: "family", Value: q.Family, NoAnswer: true,
				Err: fmt.Errorf("family %s needs measurements of the model, and %s is not one of the store's; auto, analytic and hybrid answer without", q.Family, s.model.Name)}
		}
	}
	if machine {
		if err := s.measuredAt(ctx, d, q, true); err != nil {
			return err
		}
	}
	s.framework = cmp.Or(q.Framework, s.framework)
	return nil
}

// node returns the machine q names, else the usual one of a.
func (q *Question) node(a spec.Accelerator) (spec.Node, error) {
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

// BestCard returns the card with the smallest held-out error among those of a
// key (of the family asked for, unless it is Auto), or nil. Left to choose, it
// takes only models that beat the analytic one where both were scored. The
// model's name may be in any case.
func (d *Desk) BestCard(k spec.Key, want string) (*perfmodel.Card, error) {
	if want == "analytic" {
		return nil, nil
	}
	cards := d.Cards()
	var best *perfmodel.Card
	for i, c := range cards {
		if !SameKey(c.Key, k) || want != Auto && c.Family != want {
			continue
		}
		if want == Auto && !c.BeatsUnfitted() {
			continue
		}
		if best == nil || c.MAPE < best.MAPE {
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

// noCard says which fitted models there are instead.
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

// fromMeasurements fills s from the stored measurements of its card: the model
// as they describe it, and what they all have in common.
func (s *Subject) fromMeasurements(ctx context.Context, d *Desk, q *Question) error {
	rows, err := d.Rows(ctx, store.Filter{Models: []string{s.card.Model}, Accelerators: []string{s.card.Accelerator}})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s has a fitted model but no measurement in the store: fit again", s.card.Key)
	}
	s.model = rows[0].Config.Model
	if known, err := catalog.Model(s.model.Name); err == nil && s.model.SeqLen == 0 {
		s.model.SeqLen = known.SeqLen // a source that does not print it
	}
	s.seqLen = Common(rows, func(c spec.Config) int { return c.SeqLen })
	s.framework = Common(rows, func(c spec.Config) string { return c.Framework })
	s.precision = Common(rows, func(c spec.Config) spec.Precision { return c.Plan.Precision })
	if link := Common(rows, func(c spec.Config) spec.Link { return c.Link }); link != (spec.Link{}) && q.Node == "" {
		s.link = link
	}
	return nil
}

// measuredAt fills in what the measurements closest to s were taken in: those of
// its model on its accelerator, else, on a machine that is known from
// measurements alone, all that were taken on it.
func (s *Subject) measuredAt(ctx context.Context, d *Desk, q *Question, machine bool) error {
	rows, err := d.Rows(ctx, store.Filter{Accelerators: []string{s.accelerator.Name}})
	if err != nil || len(rows) == 0 {
		return err
	}
	if machine && q.Node == "" {
		s.link = Common(rows, func(c spec.Config) spec.Link { return c.Link })
		s.node = spec.Node{Name: "measured", Accelerator: s.accelerator.Name, Devices: mostOnNode(rows), Link: s.link}
	}
	if own := perfmodel.GroupByKey(rows)[spec.Key{Model: s.model.Name, Accelerator: s.accelerator.Name}]; len(own) > 0 {
		rows = own
		s.seqLen = Common(rows, func(c spec.Config) int { return c.SeqLen })
	} else if !machine {
		return nil
	}
	s.framework = Common(rows, func(c spec.Config) string { return c.Framework })
	s.precision = Common(rows, func(c spec.Config) spec.Precision { return c.Plan.Precision })
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

// Common returns what all rows agree on, zero if they do not. There must be a
// row.
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
