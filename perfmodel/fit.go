package perfmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// FitOptions selects the rows that FitKey fits and the way it scores the fit.
type FitOptions struct {
	// MaxRows is the number of configurations to fit, at most half of the usable ones; the Card's errors are
	// those of the others. 0 fits all of them and scores by cross-validation.
	MaxRows int
	Folds   int    // number of cross-validation folds, 0 = 5
	Seed    uint64 // assigns rows to folds
	// Unfitted is scored on the held-out rows too, for Card.MAPEUnfitted. Nil = none.
	Unfitted Predictor
}

// Validate reports a field out of range.
func (o FitOptions) Validate() error {
	switch {
	case o.MaxRows < 0:
		return fmt.Errorf("perfmodel: fit on %d rows, want 0 (all) or more", o.MaxRows)
	case o.Folds < 0 || o.Folds == 1:
		return fmt.Errorf("perfmodel: %d folds, want 0 (5), or at least 2", o.Folds)
	}
	return nil
}

// FitKey fits f to the rows of one (model, accelerator) key and scores it on rows the fit did not use. Repeats
// of a configuration count as one row. Rows that are not Usable are not fitted; if they have a step time and are not
// quarantined, they count in Card.MAPEAll only. Rows of one rank alone are fitted if the family is able to (see
// Family.Alone). The Card's errors are of whole steps; without any, it has those of ranks alone apart. The result does not depend on the order of rows.
//
// A family without a Fit function is scored on all rows. The error wraps ErrTooFewPoints if the usable rows do
// not identify the parameters.
func FitKey(ctx context.Context, f Family, rows []spec.Measurement, o FitOptions) (Fitted, Card, error) {
	if err := o.Validate(); err != nil {
		return nil, Card{}, err
	}
	t, err := newTask(f, rows)
	if err != nil {
		return nil, Card{}, err
	}
	t.unfitted = o.Unfitted
	switch {
	case f.Fit == nil:
		return t.scoreUnfitted(ctx)
	case o.MaxRows > 0:
		return t.holdOut(ctx, o.MaxRows)
	}
	return t.crossValidate(ctx, o.folds(), o.Seed)
}

// task is the state of one FitKey call.
type task struct {
	family   Family
	key      spec.Key
	usable   []spec.Measurement // merged, canonical order
	alone    []spec.Measurement // of one rank alone, merged: in every fit, scored only if all rows are
	skipped  int                // number of rows of one rank alone that the family does not fit
	repeats  []spec.Measurement // usable, not merged
	doubted  []spec.Measurement // with a step time, not quarantined
	left     int                // number of rows that are not usable, doubted ones included
	score    score
	held     []spec.Measurement // rows scored so far
	unfitted Predictor          // FitOptions.Unfitted
}

func newTask(f Family, rows []spec.Measurement) (*task, error) {
	t := &task{family: f}
	for i, m := range rows {
		if k := m.Config.Key(); i == 0 {
			t.key = k
		} else if k != t.key {
			return nil, fmt.Errorf("perfmodel: rows of %s and of %s, want one key: split them with GroupByKey", t.key, k)
		}
		if Usable(m) || f.Alone && UsableOrAlone(m) {
			t.repeats = append(t.repeats, m)
			continue
		}
		t.left++
		switch {
		case m.Config.Alone():
			if UsableOrAlone(m) {
				t.skipped++
			}
		case m.Outcome == spec.OK && m.MedianStepSec() > 0 && !m.Quarantined():
			t.doubted = append(t.doubted, m)
		}
	}
	order, _ := orderRows(t.repeats)
	t.repeats = pick(t.repeats, order)
	merged, doubted := MergeRepeats(t.repeats), MergeRepeats(t.doubted)
	t.doubted = doubted
	for _, m := range merged {
		if m.Config.Alone() {
			t.alone = append(t.alone, m)
		} else {
			t.usable = append(t.usable, m)
		}
	}
	if len(merged) == 0 {
		return nil, fmt.Errorf("perfmodel: %s: none of %d rows is usable%s: %w", t.key, len(rows), whyNot(rows), ErrTooFewPoints)
	}
	return t, nil
}

// whyNot says why no row is usable, as the end of a message: the number of rows in doubt, and the most frequent
// doubt.
func whyNot(rows []spec.Measurement) string {
	doubts, doubted, most, alone := map[string]int{}, 0, "", 0
	for _, m := range rows {
		if m.Config.Alone() && UsableOrAlone(m) {
			alone++
		}
		why := m.DoubtReason()
		if m.Outcome != spec.OK || why == "" {
			continue
		}
		doubted++
		doubts[why]++
		if n := doubts[why]; n > doubts[most] || n == doubts[most] && why < most {
			most = why
		}
	}
	switch {
	case doubted == 0 && alone > 0:
		return fmt.Sprintf(" (%d of one rank alone, which this family does not fit)", alone)
	case doubted == 0:
		return ""
	}
	return fmt.Sprintf(" (%d in doubt: %s; measure again with nothing else running, under another label)", doubted, most)
}

// Split divides the usable rows of one key into those that FitKey fits with MaxRows = limit, and those that it
// scores. Repeats of a configuration are one row. The error is that of FitKey for such rows.
func Split(f Family, rows []spec.Measurement, limit int) (fit, held []spec.Measurement, err error) {
	t, err := newTask(f, rows)
	if err != nil {
		return nil, nil, err
	}
	return t.split(limit)
}

func (t *task) split(limit int) (fit, held []spec.Measurement, err error) {
	n := min(limit, len(t.usable)/2)
	if n == 0 {
		return nil, nil, fmt.Errorf("perfmodel: %s: %s of whole steps, want 2 to fit one and score the other: %w", t.key, spec.Count(len(t.usable), "usable configuration"), ErrTooFewPoints)
	}
	chosen := t.choose(n)
	for i, m := range t.usable {
		if slices.Contains(chosen, i) {
			fit = append(fit, m)
		} else {
			held = append(held, m)
		}
	}
	return fit, held, nil
}

// holdOut fits the configurations that the family chooses and scores the others.
func (t *task) holdOut(ctx context.Context, limit int) (Fitted, Card, error) {
	fit, rest, err := t.split(limit)
	if err != nil {
		return nil, Card{}, err
	}
	fitted, card, err := t.family.Fit(ctx, Rows(slices.Concat(fit, t.alone)))
	if err != nil {
		return nil, Card{}, err
	}
	if err := t.scoreHeld(ctx, fitted, rest); err != nil {
		return nil, Card{}, err
	}
	return t.finish(ctx, fitted, card)
}

// choose returns n indices into t.usable: the family's choice, or evenly spaced ones.
func (t *task) choose(n int) []int {
	configs := make([]spec.Config, len(t.usable))
	for i, m := range t.usable {
		configs[i] = m.Config
	}
	if t.family.Choose != nil {
		return t.family.Choose(configs, n)
	}
	out := make([]int, n)
	for i := range out {
		out[i] = i * len(configs) / n
	}
	return out
}

// folded returns the rows that a cross-validation scores, and those in each of its fits: whole steps are scored, or if there
// are none, ranks alone.
func (t *task) folded() (scored, always []spec.Measurement) {
	if len(t.usable) == 0 {
		return t.alone, nil
	}
	return t.usable, t.alone
}

// crossValidate fits all rows and scores each row with a fit that left out its fold.
func (t *task) crossValidate(ctx context.Context, folds int, seed uint64) (Fitted, Card, error) {
	fitted, card, err := t.family.Fit(ctx, Rows(slices.Concat(t.usable, t.alone)))
	if err != nil {
		return nil, Card{}, err
	}
	scored, always := t.folded()
	fold := deal(scored, min(folds, len(scored)), seed)
	skipped := 0
	for k := range min(folds, len(scored)) {
		var in, out []spec.Measurement
		for i, m := range scored {
			if fold[i] == k {
				out = append(out, m)
			} else {
				in = append(in, m)
			}
		}
		fitted, _, err := t.family.Fit(ctx, Rows(slices.Concat(in, always)))
		if errors.Is(err, ErrTooFewPoints) {
			skipped += len(out)
			continue
		}
		if err != nil {
			return nil, Card{}, err
		}
		if err := t.scoreHeld(ctx, fitted, out); err != nil {
			return nil, Card{}, err
		}
	}
	if skipped > 0 {
		card.Warnings = append(card.Warnings, notValidated(skipped, len(scored)))
	}
	return t.finish(ctx, fitted, card)
}

// notValidated is the warning of configurations that no fit scored.
func notValidated(n, of int) string {
	return fmt.Sprintf("perfmodel: %d of %d configurations not cross-validated: too few others", n, of)
}

// deal returns the fold of every row. Rows are assigned to folds in turn, in the order of a seeded hash of
// their configuration.
func deal(rows []spec.Measurement, folds int, seed uint64) []int {
	type hashedRow struct {
		hash uint64
		row  int
	}
	hashed := make([]hashedRow, len(rows))
	for i, m := range rows {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d|%s", seed, asJSON(m.Config))
		hashed[i] = hashedRow{h.Sum64(), i}
	}
	slices.SortFunc(hashed, func(a, b hashedRow) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.row, b.row)) })
	out := make([]int, len(rows))
	for i, c := range hashed {
		out[c.row] = i % folds
	}
	return out
}

// scoreUnfitted scores a family that needs no fit.
func (t *task) scoreUnfitted(ctx context.Context) (Fitted, Card, error) {
	if t.family.Unfitted == nil {
		return nil, Card{}, fmt.Errorf("perfmodel: family %q can neither be fitted nor predict without a fit", t.family.Name)
	}
	if err := t.scoreHeld(ctx, t.family.Unfitted, t.usable); err != nil {
		return nil, Card{}, err
	}
	return t.finish(ctx, t.family.Unfitted, Card{})
}

// scoreHeld scores p on rows it was not fitted on.
func (t *task) scoreHeld(ctx context.Context, p Predictor, rows []spec.Measurement) error {
	t.held = append(t.held, rows...)
	return t.score.add(ctx, p, rows)
}

// finish writes the scores to the family's card.
func (t *task) finish(ctx context.Context, fitted Fitted, card Card) (Fitted, Card, error) {
	card.Key, card.Family, card.NLeftOut, card.NAlone = t.key, t.family.Name, t.left, len(t.alone)
	card.NHeldOut = len(t.score.ape)
	card.MAPE, card.P95APE = ErrorSummary(t.score.ape)
	card.Coverage = 0
	if card.NHeldOut > 0 {
		card.Coverage = float64(t.score.inside) / float64(card.NHeldOut)
	}
	if t.unfitted != nil {
		var other score
		if err := other.add(ctx, t.unfitted, t.held); err != nil {
			return nil, Card{}, err
		}
		card.MAPEUnfitted, _ = ErrorSummary(other.ape)
	}
	if len(t.usable) == 0 && card.NHeldOut > 0 { // ranks alone were scored
		card.MAPEAlone, card.MAPEAloneUnfitted = card.MAPE, card.MAPEUnfitted
		card.NHeldOut, card.MAPE, card.P95APE, card.Coverage, card.MAPEUnfitted = 0, 0, 0, 0, 0
		t.score.ape = nil
		card.Warnings = append(card.Warnings, fmt.Sprintf("perfmodel: all %s are of one rank alone: their mean error is %.1f %%, each predicted by the others; that of whole steps is unknown",
			spec.Count(len(t.alone), "row"), 100*card.MAPEAlone))
	}
	if t.skipped > 0 {
		card.Warnings = append(card.Warnings, fmt.Sprintf("perfmodel: %s of one rank alone not fitted: family %s knows only whole steps", spec.Count(t.skipped, "row"), t.family.Name))
	}
	if n := t.score.uncovered; n > 0 {
		card.Warnings = append(card.Warnings, fmt.Sprintf("perfmodel: %d configurations not covered, so not scored", n))
	}
	if err := t.score.add(ctx, fitted, t.doubted); err != nil {
		return nil, Card{}, err
	}
	card.MAPEAll, _ = ErrorSummary(t.score.ape)
	if card.Params == nil { // empty, not null, in JSON
		card.Params = map[string]Param{}
	}
	if card.Warnings == nil {
		card.Warnings = []string{}
	}
	card.NAll = len(t.score.ape)
	return fitted, card, nil
}

// score collects prediction errors.
type score struct {
	ape       []float64 // |predicted - measured| / measured step time
	inside    int       // measured times within the predicted interval
	uncovered int
}

// maxAPE is far above the error of any real measurement. Sums of smaller errors
// are finite.
const maxAPE = 1e100

// add scores p on rows.
func (s *score) add(ctx context.Context, p Predictor, rows []spec.Measurement) error {
	for _, m := range rows {
		got, err := p.Predict(ctx, m.Config)
		switch {
		case errors.Is(err, ErrNotCovered):
			s.uncovered++
			continue
		case err != nil:
			return err
		}
		sec, lo, hi := got.StepSec(m.Config.Plan.GlobalBatch())
		want := m.MedianStepSec()
		ape := math.Abs(sec-want) / want
		if !(ape < maxAPE) {
			return fmt.Errorf("perfmodel: %s, plan %s, %s: %g s measured, %g s predicted: no meaningful error",
				m.Config.Key(), m.Config.Plan, m.Origin, want, sec)
		}
		s.ape = append(s.ape, ape)
		if got.Lo > 0 && lo <= want && want <= hi {
			s.inside++
		}
	}
	return ctx.Err()
}

// Rows returns an iterator over rows, as Family.Fit takes them.
func Rows(rows []spec.Measurement) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		for _, m := range rows {
			if !yield(m, nil) {
				return
			}
		}
	}
}
