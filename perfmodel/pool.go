package perfmodel

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Pool is a fit to rows of several keys, see Family.Condition.
type Pool interface {
	Fitted
	// Of returns the part of the fit that predicts key, to be stored, and the Params and Warnings of its card. It gives
	// the key's configurations the same predictions as the whole fit.
	Of(key spec.Key) (Fitted, Card)
}

// PoolOptions selects what FitPool fits. The zero value fits all keys on all rows.
type PoolOptions struct {
	FitOptions
	// Keys reports whether to fit a key. The rows of the other keys only take part in its fit. Nil = all keys.
	Keys  func(spec.Key) bool
	Alone bool                 // fit each key to its own rows
	Done  func(fitted, of int) // called with the numbers of keys; nil = no calls
}

// KeyFit is the result of FitPool for one key.
type KeyFit struct {
	Key    spec.Key
	Fitted Fitted
	Card   Card
	Err    error // why there is no fit; it is that of FitKey
}

// FitPool fits the keys of rows, in the order of CompareKeys. It is FitKey for each of them, except that rows of the same
// training stacks, of any model and accelerator, take part in the fit of a key: those that FitKey would fit of their own
// key. The rows that score a key are in no fit that predicts them.
//
// Keys of the same stacks share one fit, and with cross-validation one fit per fold. A family without a Condition function
// fits each key alone; so does FitPool for keys without a common fit, such as with a row that has no finite one. The
// result does not depend on the order of rows. The error is that of ctx or of o.
func FitPool(ctx context.Context, f Family, rows []spec.Measurement, o PoolOptions) ([]KeyFit, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	byKey := GroupByKey(rows)
	var out []KeyFit
	for _, k := range slices.SortedFunc(maps.Keys(byKey), CompareKeys) {
		if o.Keys == nil || o.Keys(k) {
			out = append(out, KeyFit{Key: k})
		}
	}
	if f.Condition != nil && !o.Alone {
		if err := fitTogether(ctx, f, byKey, out, o); err != nil {
			return nil, err
		}
	}
	for i := range out {
		k := &out[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if k.Fitted == nil {
			k.Fitted, k.Card, k.Err = FitKey(ctx, f, byKey[k.Key], o.FitOptions)
		}
		if o.Done != nil {
			o.Done(i+1, len(out))
		}
	}
	return out, ctx.Err()
}

// member is a key with rows that take part in a fit.
type member struct {
	*task
	fit, held []spec.Measurement // usable rows, merged
	fold      []int              // of each row of fit, if there are no rows held out
	stacks    []string           // sorted names of the training stacks of its usable rows
	skipped   int                // rows of fit that no fold scores, since there are no others
}

// fitTogether fills in the keys of out that have a common fit with others. The error is that of ctx.
func fitTogether(ctx context.Context, f Family, byKey map[spec.Key][]spec.Measurement, out []KeyFit, o PoolOptions) error {
	var members []*member
	for _, k := range slices.SortedFunc(maps.Keys(byKey), CompareKeys) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m := newMember(f, byKey[k], o.FitOptions); m != nil {
			members = append(members, m)
		}
	}
	pools := map[string]*pool{}
	for i := range out {
		at := slices.IndexFunc(members, func(m *member) bool { return m.key == out[i].Key })
		if at < 0 {
			continue
		}
		name := strings.Join(members[at].stacks, "\n")
		if pools[name] == nil {
			pools[name] = &pool{family: f, stacks: members[at].stacks, members: members}
		}
		p := pools[name]
		p.of, p.out = append(p.of, members[at]), append(p.out, &out[i])
	}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		if pools[name].fit(ctx, o.FitOptions); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// inEveryFit is the fold of rows that are not scored.
const inEveryFit = -2

// newMember returns nil for rows that FitKey does not fit.
func newMember(f Family, rows []spec.Measurement, o FitOptions) *member {
	t, err := newTask(f, rows)
	if err != nil {
		return nil
	}
	t.unfitted = o.Unfitted
	scored, always := t.folded()
	m := &member{task: t, fit: slices.Concat(scored, always)}
	if o.MaxRows > 0 {
		if m.fit, m.held, err = t.split(o.MaxRows); err != nil {
			return nil
		}
		m.fit = slices.Concat(m.fit, t.alone)
	} else {
		m.fold = deal(scored, min(o.folds(), len(scored)), o.Seed)
		for range always {
			m.fold = append(m.fold, inEveryFit)
		}
	}
	for _, row := range slices.Concat(t.usable, t.alone) {
		m.stacks = append(m.stacks, stackOf(&row))
	}
	slices.Sort(m.stacks)
	m.stacks = slices.Compact(m.stacks)
	return m
}

// stackOf returns the name of a row's training stack, without release and parts.
func stackOf(m *spec.Measurement) string {
	return stack.Of(m.Config.Framework, m.Config.Accelerator.Arch).Name
}

// pool is a fit of the keys of with the rows of members that have one of the stacks.
type pool struct {
	family  Family
	stacks  []string
	members []*member
	of      []*member
	out     []*KeyFit // results of of
}

// fit fills in the results, or none if there is no common fit.
func (p *pool) fit(ctx context.Context, o FitOptions) {
	whole, rows, err := p.condition(ctx, -1)
	if err != nil {
		return
	}
	hash, err := HashRows(ctx, rows)
	if err != nil {
		return
	}
	for k := 0; o.MaxRows == 0 && k < o.folds(); k++ {
		if err := p.scoreFold(ctx, k); err != nil {
			return
		}
	}
	fits := make([]KeyFit, len(p.of))
	for i, m := range p.of {
		fitted, card := whole.Of(m.key)
		card.NFit, card.NPooled, card.DataHash = len(m.fit), len(rows)-len(m.fit), hash
		if m.skipped > 0 {
			card.Warnings = append(card.Warnings, notValidated(m.skipped, len(m.fit)))
		}
		if err := m.scoreHeld(ctx, fitted, m.held); err != nil {
			return
		}
		fits[i].Key = m.key
		if fits[i].Fitted, fits[i].Card, err = m.finish(ctx, fitted, card); err != nil {
			return
		}
	}
	for i := range fits {
		*p.out[i] = fits[i]
	}
}

// condition fits the rows outside of a fold, and returns them.
func (p *pool) condition(ctx context.Context, fold int) (Pool, []spec.Measurement, error) {
	var merged, rows []spec.Measurement
	for _, m := range p.members {
		in := map[spec.Config]bool{}
		for i := range m.fit {
			if (m.fold == nil || m.fold[i] != fold) && slices.Contains(p.stacks, stackOf(&m.fit[i])) {
				in[Canonical(m.fit[i].Config)] = true
				merged = append(merged, m.fit[i])
			}
		}
		for _, r := range m.repeats {
			if in[Canonical(r.Config)] {
				rows = append(rows, r)
			}
		}
	}
	fitted, err := p.family.Condition(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	return fitted.(Pool), merged, nil
}

// scoreFold scores the rows of a fold by a fit without any row of it.
func (p *pool) scoreFold(ctx context.Context, fold int) error {
	without, rows, err := p.condition(ctx, fold)
	if err != nil {
		return err
	}
	for _, m := range p.of {
		var out []spec.Measurement
		for i, f := range m.fold {
			if f == fold {
				out = append(out, m.fit[i])
			}
		}
		if len(rows) == 0 {
			m.skipped += len(out)
			continue
		}
		of, _ := without.Of(m.key)
		if err := m.scoreHeld(ctx, of, out); err != nil {
			return err
		}
	}
	return nil
}

// folds returns the number of folds of a cross-validation.
func (o *FitOptions) folds() int { return cmp.Or(o.Folds, 5) }
