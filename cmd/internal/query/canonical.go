package query

import (
	"cmp"
	"context"
	"slices"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// CanonicalKey returns the form in which keys are compared: the model by catalog.CanonicalModel.
// A performance model of one key is used for another with the same canonical form.
func CanonicalKey(k spec.Key) spec.Key {
	return spec.Key{Model: catalog.CanonicalModel(k.Model), Accelerator: k.Accelerator}
}

// CanonicalKeys returns the set of the canonical forms of keys.
func CanonicalKeys(keys []spec.Key) map[spec.Key]bool {
	out := make(map[spec.Key]bool, len(keys))
	for _, k := range keys {
		out[CanonicalKey(k)] = true
	}
	return out
}

// OneName returns rows with one name for each model, so that all its rows have one key: the first name
// of its rows.
func OneName(rows []spec.Measurement) []spec.Measurement {
	first, names := map[string]string{}, map[string]string{} // by canonical form; by name
	out := slices.Clone(rows)
	for i := range out {
		name := &out[i].Config.Model.Name
		if _, known := names[*name]; !known {
			form := catalog.CanonicalModel(*name)
			first[form] = cmp.Or(first[form], *name)
			names[*name] = first[form]
		}
		*name = names[*name]
	}
	return out
}

// KeyRows returns the stored measurements of keys, which are CanonicalKeys. Models keep their stored names.
func (r *Resolver) KeyRows(ctx context.Context, keys map[spec.Key]bool) (rows []spec.Measurement, err error) {
	err = r.Read(func(db reader.Store) error {
		tallies, err := db.Summary(ctx)
		var f reader.Filter
		for _, t := range tallies {
			if keys[CanonicalKey(spec.Key{Model: t.Model, Accelerator: t.Accelerator})] {
				f.Models, f.Accelerators = append(f.Models, t.Model), append(f.Accelerators, t.Accelerator)
			}
		}
		if err == nil && len(f.Models) > 0 {
			rows, err = RowsOf(ctx, db, f)
		}
		return err
	})
	return slices.DeleteFunc(rows, func(m spec.Measurement) bool { return !keys[CanonicalKey(m.Config.Key())] }), err
}

// StoredFilter returns f with the names of stored measurements. The names of f may differ from
// these in case and punctuation, models and accelerators may have any name of the catalog, and an
// accelerator may be given by words that no other stored one has.
func (r *Resolver) StoredFilter(ctx context.Context, f reader.Filter) (reader.Filter, error) {
	if len(f.Models)+len(f.Sources)+len(f.Accelerators) == 0 {
		return f, nil
	}
	tallies, err := r.Summary(ctx)
	return FilterOf(f, tallies), err
}

// FilterOf is StoredFilter for the rows of tallies.
func FilterOf(f reader.Filter, tallies []reader.Tally) reader.Filter {
	f.Models = storedNames(f.Models, tallies, ModelOf, catalog.CanonicalModel)
	f.Sources = storedNames(f.Sources, tallies, SourceOf, named.Fold)
	f.Accelerators = CatalogNames(f.Accelerators)
	stored := names(tallies, AcceleratorOf)
	for i, name := range f.Accelerators {
		if found := Match(name, stored); len(found) == 1 {
			f.Accelerators[i] = found[0]
		}
	}
	return f
}

// storedNames replaces each name by the stored ones with the same canonical form; a name without
// any stays.
func storedNames(given []string, tallies []reader.Tally, of func(reader.Tally) string, canonical func(string) string) []string {
	stored := map[string][]string{} // by canonical form
	for _, name := range names(tallies, of) {
		form := canonical(name)
		stored[form] = append(stored[form], name)
	}
	var out []string
	for _, name := range given {
		if found := stored[canonical(name)]; found != nil {
			out = append(out, found...)
		} else {
			out = append(out, name)
		}
	}
	return out
}

// names returns the distinct names of tallies, sorted.
func names(tallies []reader.Tally, of func(reader.Tally) string) []string {
	var out []string
	for _, t := range tallies {
		out = append(out, of(t))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CatalogNames replaces names of accelerators by those of the catalog; a name that it lacks
// stays.
func CatalogNames(names []string) []string {
	out := slices.Clone(names)
	for i, n := range names {
		if a, err := catalog.Accelerator(n); err == nil {
			out[i] = a.Name
		}
	}
	return out
}
