package ask

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Desk is where questions are answered: over a store of measurements and a
// registry of fitted models. It is safe for concurrent use if Read is.
type Desk struct {
	// Read calls use with the store opened for reading; not at all where there
	// is no store yet.
	Read func(use func(*store.DB) error) error
	// Fitted holds the fitted models.
	Fitted *registry.Registry
	// Warn is told what should be seen but stops nothing; nil drops it.
	Warn func(error)
}

// Resolved is a question with everything looked up: what to ask, and whom.
type Resolved struct {
	planner.Request                     // without devices, shape and plan
	Predictor       perfmodel.Predictor // answers
	Family          string              // of Predictor
	Card            *perfmodel.Card     // of Predictor, nil where it was not fitted here
}

// Auto is the family that stands for the best there is.
const Auto = "auto"

// Resolve looks up what q names. Errors are *FieldError or
// *catalog.UnknownError where the question is at fault.
func (d *Desk) Resolve(ctx context.Context, q Question) (Resolved, error) {
	if q.Family == "" {
		q.Family = Auto
	}
	if err := q.Check(); err != nil {
		return Resolved{}, err
	}
	s, err := d.subject(ctx, &q)
	if err != nil {
		return Resolved{}, err
	}
	r, err := q.Request(&s)
	if err != nil {
		return Resolved{}, err
	}
	p, fam, err := d.Predictor(s.card, q.Family)
	if err != nil {
		return Resolved{}, err
	}
	if fam != familyOf(s.card, q.Family) {
		s.card = nil
	}
	return Resolved{Request: r, Predictor: p, Family: fam, Card: s.card}, nil
}

// Predictor returns the performance model that answers, and its family: the one
// of card unless it is nil, else the family asked for as it is, else the
// analytic one.
func (d *Desk) Predictor(card *perfmodel.Card, want string) (perfmodel.Predictor, string, error) {
	fam := familyOf(card, want)
	if card == nil {
		p, err := Unfitted(fam)
		return p, fam, err
	}
	fitted, _, err := d.Fitted.Get(card.Key, card.Family)
	if err != nil && want == Auto {
		d.warn(fmt.Errorf("%w; answered by the analytic model, pacer fit --family %s renews it", err, card.Family))
		p, err := Analytic()
		return p, "analytic", err
	}
	return fitted, fam, err
}

// familyOf names the kind of performance model that answers.
func familyOf(card *perfmodel.Card, want string) string {
	switch {
	case card != nil:
		return card.Family
	case want != Auto:
		return want
	}
	return "analytic"
}

func (d *Desk) warn(err error) {
	if d.Warn != nil {
		d.Warn(err)
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
func (d *Desk) Rows(ctx context.Context, f store.Filter) (rows []spec.Measurement, err error) {
	err = d.Read(func(db *store.DB) error {
		for m, err := range db.Query(ctx, f) {
			if err != nil {
				return err
			}
			rows = append(rows, m)
		}
		return nil
	})
	return rows, err
}

// Summary counts what is stored.
func (d *Desk) Summary(ctx context.Context) (tallies []store.Tally, err error) {
	err = d.Read(func(db *store.DB) error {
		tallies, err = db.Summary(ctx)
		return err
	})
	return tallies, err
}

// errStop ends reading a store early.
var errStop = errors.New("enough read")

// firstRow returns the first stored row that f chooses.
func (d *Desk) firstRow(ctx context.Context, f store.Filter) (row spec.Measurement, err error) {
	err = d.Read(func(db *store.DB) error {
		for m, err := range db.Query(ctx, f) {
			if err != nil {
				return err
			}
			row = m
			return errStop
		}
		return fmt.Errorf("store: no row of %v %v", f.Models, f.Accelerators) // it was there a moment ago
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return row, err
}

// Cards returns the cards of the fitted models that can be read.
func (d *Desk) Cards() []perfmodel.Card {
	cards, err := d.Fitted.List()
	if err != nil { // the cards that can be read are there all the same
		d.warn(err)
	}
	return cards
}
