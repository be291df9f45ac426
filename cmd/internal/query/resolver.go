package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Resolver looks requests up in a store of measurements and a registry of fitted
// models. It is safe for concurrent use if Read is.
type Resolver struct {
	// Read calls use with the store opened for reading. Without a store it does not
	// call use and returns nil.
	Read func(use func(reader.Store) error) error
	// Fitted holds the fitted models.
	Fitted *registry.Registry
	// Warn receives errors that do not stop a request; nil drops them.
	Warn func(error)
}

// Resolved is a request with its names looked up, and the model that answers it.
type Resolved struct {
	planner.Request // without devices, shape and plan
	Predictor       perfmodel.Predictor
	Family          string          // of Predictor
	Card            *perfmodel.Card // of Predictor, nil unless it was fitted here
}

// Auto selects the best family there is.
const Auto = "auto"

// Resolve looks up what q names. Errors are *FieldError or
// *catalog.UnknownError where the request is at fault.
func (r *Resolver) Resolve(ctx context.Context, q Request) (Resolved, error) {
	if q.Family == "" {
		q.Family = Auto
	}
	if err := q.Check(); err != nil {
		return Resolved{}, err
	}
	t, err := r.Target(ctx, &q)
	if err != nil {
		return Resolved{}, err
	}
	request, err := q.PlannerRequest(t)
	if err != nil {
		return Resolved{}, err
	}
	p, fam, err := r.Predictor(t.card, q.Family)
	if err != nil {
		return Resolved{}, err
	}
	card := t.card
	if fam != familyOf(card, q.Family) {
		card = nil
	}
	return Resolved{Request: request, Predictor: p, Family: fam, Card: card}, nil
}

// Predictor returns a performance model and its family: the fitted one of card,
// else the requested family without a fit, else the analytic model.
func (r *Resolver) Predictor(card *perfmodel.Card, want string) (perfmodel.Predictor, string, error) {
	fam := familyOf(card, want)
	if card == nil {
		p, err := Unfitted(fam)
		return p, fam, err
	}
	fitted, _, err := r.Fitted.Get(card.Key, card.Family)
	if err != nil && want == Auto {
		r.warn(fmt.Errorf("%w; answered by the analytic model, pacer fit --family %s renews it", err, card.Family))
		p, err := Analytic()
		return p, "analytic", err
	}
	return fitted, fam, err
}

// familyOf names the family that Predictor returns.
func familyOf(card *perfmodel.Card, want string) string {
	switch {
	case card != nil:
		return card.Family
	case want != Auto:
		return want
	}
	return "analytic"
}

func (r *Resolver) warn(err error) {
	if r.Warn != nil {
		r.Warn(err)
	}
}

// Analytic returns the model that needs no fit.
func Analytic() (perfmodel.Predictor, error) { return Unfitted("analytic") }

// Unfitted returns a family that predicts without measurements.
func Unfitted(name string) (perfmodel.Predictor, error) {
	fam, err := family.Lookup(name)
	if err != nil {
		return nil, err
	}
	if fam.Unfitted == nil {
		return nil, fmt.Errorf("family %s cannot predict without measurements", name)
	}
	return fam.Unfitted, nil
}

// Rows returns the stored measurements that f chooses.
func (r *Resolver) Rows(ctx context.Context, f reader.Filter) (rows []spec.Measurement, err error) {
	err = r.Read(func(db reader.Store) error {
		rows, err = RowsOf(ctx, db, f)
		return err
	})
	return rows, err
}

// RowsOf returns the measurements of an open store that f chooses.
func RowsOf(ctx context.Context, db reader.Store, f reader.Filter) (rows []spec.Measurement, err error) {
	for m, err := range db.Query(ctx, f) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, m)
	}
	return rows, nil
}

// Summary counts what is stored.
func (r *Resolver) Summary(ctx context.Context) (tallies []reader.Tally, err error) {
	err = r.Read(func(db reader.Store) error {
		tallies, err = db.Summary(ctx)
		return err
	})
	return tallies, err
}

// errFound ends the reading of a store, errNoRow says that no row was found.
var (
	errFound = errors.New("query: found")
	errNoRow = errors.New("no such row")
)

// firstRow returns the first stored row that f chooses.
func (r *Resolver) firstRow(ctx context.Context, f reader.Filter) (spec.Measurement, error) {
	return r.findRow(ctx, f, func(*spec.Measurement) bool { return true })
}

// findRow returns the first stored row that f chooses and that is accepted by ok. If there is none,
// the error wraps errNoRow.
func (r *Resolver) findRow(ctx context.Context, f reader.Filter, ok func(*spec.Measurement) bool) (row spec.Measurement, err error) {
	err = r.Read(func(db reader.Store) error {
		for m, err := range db.Query(ctx, f) {
			if err != nil {
				return err
			}
			if ok(&m) {
				row = m
				return errFound
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errFound):
		return row, nil
	case err == nil:
		err = fmt.Errorf("store: %w of %v %v", errNoRow, f.Models, f.Accelerators)
	}
	return row, err
}

// Cards returns the cards of the fitted models that can be read.
func (r *Resolver) Cards() []perfmodel.Card {
	cards, err := r.Fitted.List()
	if err != nil { // the cards that can be read are there all the same
		r.warn(err)
	}
	return cards
}
