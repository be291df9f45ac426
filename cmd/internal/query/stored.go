package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// FindModel returns the catalog's model of a name, else the one the store has
// measurements of. The error of a name that neither has is a
// catalog.UnknownError.
func (r *Resolver) FindModel(ctx context.Context, name string) (spec.Model, error) {
	m, _, err := r.findModel(ctx, name)
	return m, err
}

// findModel returns the catalog's model of a name, else the one the store has
// measurements of. The name returned is how measurements and fitted models call
// it; stored is whether the catalog lacks it.
func (r *Resolver) findModel(ctx context.Context, name string) (m spec.Model, stored bool, err error) {
	m, err = catalog.Model(name)
	var unknown *catalog.UnknownError
	if !errors.As(err, &unknown) {
		return m, false, err
	}
	names, err := r.storedOnly(ctx, ModelOf, isCatalogModel)
	if err != nil {
		return m, false, notSeen(unknown, err)
	}
	i := slices.IndexFunc(names, func(s string) bool { return named.Fold(s) == named.Fold(name) })
	if i < 0 {
		if m, err := catalog.ModelOnHub(name); err == nil {
			return m, false, nil
		}
		return m, false, unknown.With(names)
	}
	row, err := r.firstRow(ctx, reader.Filter{Models: names[i : i+1]})
	return row.Config.Model, true, err
}

// FindAccelerator returns the catalog's accelerator of a name, else the one the
// store has measurements of; stored is whether the catalog lacks it. Of a stored
// one, words of its name that no other has suffice: cpu. The error of a name that
// neither has is a catalog.UnknownError. It comes with its micro-benchmarks; without a readable
// store it does not, with a warning.
func (r *Resolver) FindAccelerator(ctx context.Context, name string) (a spec.Accelerator, stored bool, err error) {
	a, stored, err = r.findAccelerator(ctx, name)
	if also := catalog.AlsoMeans(name); err == nil && also != "" {
		r.warn(fmt.Errorf("accelerator %s taken as %s, not %s", name, a.Name, also))
	}
	if err == nil && a.Measured == "" {
		if a.Measured, err = r.MeasuredText(ctx, a.Name); err != nil && ctx.Err() == nil {
			r.warn(fmt.Errorf("%w; answered without the micro-benchmarks that it may have", err))
			err = nil
		}
	}
	return a, stored, err
}

// MeasuredText returns spec.Accelerator.Measured of an accelerator by name, "" if it has no micro-benchmarks.
func (r *Resolver) MeasuredText(ctx context.Context, accelerator string) (text string, err error) {
	err = r.Read(func(db reader.Store) error {
		text, err = db.MeasuredText(ctx, accelerator)
		return err
	})
	return text, err
}

// measuredOnly returns the accelerators with micro-benchmarks that the catalog lacks.
func (r *Resolver) measuredOnly(ctx context.Context) (out []spec.Accelerator, err error) {
	err = r.Read(func(db reader.Store) error {
		out, err = db.Measured(ctx)
		return err
	})
	return slices.DeleteFunc(slices.Clone(out), func(a spec.Accelerator) bool { return isCatalogAccelerator(a.Name) }), err
}

func (r *Resolver) findAccelerator(ctx context.Context, name string) (a spec.Accelerator, stored bool, err error) {
	a, err = catalog.Accelerator(name)
	var unknown *catalog.UnknownError
	if !errors.As(err, &unknown) {
		return a, false, err
	}
	names, err := r.storedOnly(ctx, AcceleratorOf, isCatalogAccelerator)
	if err != nil {
		return a, false, notSeen(unknown, err)
	}
	measured, err := r.measuredOnly(ctx)
	if err != nil {
		return a, false, notSeen(unknown, err)
	}
	for _, m := range measured {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	found := Match(name, names)
	switch len(found) {
	case 0:
		a, err := catalog.AcceleratorOf(name)
		if errors.As(err, &unknown) {
			return a, false, unknown.With(names)
		}
		return a, false, err
	case 1:
		if i := slices.IndexFunc(measured, func(m spec.Accelerator) bool { return m.Name == found[0] }); i >= 0 {
			return measured[i], true, nil
		}
		row, err := r.firstRow(ctx, reader.Filter{Accelerators: found})
		return row.Config.Accelerator, true, err
	}
	return a, false, &FieldError{Field: "accelerator", Value: name, NoAnswer: true, Err: fmt.Errorf("accelerator %q is any of %q: name one of them", name, found)}
}

// Match returns the name that equals name but for case and punctuation, else all names that
// have name as one or more successive words.
func Match(name string, names []string) []string {
	want := named.Fold(name)
	var out []string
	for _, s := range names {
		if named.Fold(s) == want {
			return []string{s}
		}
		if hasWords(s, want) {
			out = append(out, s)
		}
	}
	return out
}

// hasWords reports whether successive words of s fold to want.
func hasWords(s, want string) bool {
	words := strings.Fields(s)
	for i := range words {
		for j := i + 1; want != "" && j <= len(words); j++ {
			if named.Fold(strings.Join(words[i:j], " ")) == want {
				return true
			}
		}
	}
	return false
}

// notSeen is the error of a name that the catalog lacks and that could not be
// looked up in the store.
func notSeen(unknown *catalog.UnknownError, err error) error {
	return fmt.Errorf("%s; the store cannot be read: %w", unknown.Error(), err)
}

// ModelOf returns the model of a tally.
func ModelOf(t reader.Tally) string { return t.Model }

// SourceOf returns the source of a tally.
func SourceOf(t reader.Tally) string { return t.Source }

// AcceleratorOf returns the accelerator of a tally.
func AcceleratorOf(t reader.Tally) string { return t.Accelerator }

func isCatalogModel(name string) bool {
	_, err := catalog.Model(name)
	return err == nil
}

func isCatalogAccelerator(name string) bool {
	_, err := catalog.Accelerator(name)
	return err == nil
}

// storedOnly returns the names in the store that the catalog lacks, sorted.
func (r *Resolver) storedOnly(ctx context.Context, of func(reader.Tally) string, known func(string) bool) ([]string, error) {
	tallies, err := r.Summary(ctx)
	return slices.DeleteFunc(names(tallies, of), known), err
}

// lockedOut reports whether err is that another process has the store open, and warns about
// it: only the names of the catalog are available then.
func (r *Resolver) lockedOut(err error) bool {
	if !errors.Is(err, reader.ErrLocked) {
		return false
	}
	r.warn(fmt.Errorf("%w; only what the catalog knows is listed", err))
	return true
}
