package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/profiler/store"
)

// findModel returns the catalog's model of a name, else the one the store has
// measurements of. The name returned is how measurements and fitted models call
// it; stored is whether the catalog lacks it.
func findModel(c *cli.Context, name string) (m spec.Model, stored bool, err error) {
	m, err = catalog.Model(name)
	var unknown *catalog.UnknownError
	if !errors.As(err, &unknown) {
		return m, false, err
	}
	names, err := storedOnly(c, modelOf, isCatalogModel)
	if err != nil {
		return m, false, err
	}
	i := slices.IndexFunc(names, func(s string) bool { return named.Fold(s) == named.Fold(name) })
	if i < 0 {
		return m, false, withStored(unknown, names)
	}
	row, err := firstRow(c, store.Filter{Models: names[i : i+1]})
	return row.Config.Model, true, err
}

// findAccelerator is findModel of accelerators. Of a stored one, words of its
// name that no other has suffice: cpu.
func findAccelerator(c *cli.Context, name string) (a spec.Accelerator, stored bool, err error) {
	a, err = catalog.Accelerator(name)
	var unknown *catalog.UnknownError
	if !errors.As(err, &unknown) {
		return a, false, err
	}
	names, err := storedOnly(c, acceleratorOf, isCatalogAccelerator)
	if err != nil {
		return a, false, err
	}
	found := meant(name, names)
	switch len(found) {
	case 0:
		return a, false, withStored(unknown, names)
	case 1:
		row, err := firstRow(c, store.Filter{Accelerators: found})
		return row.Config.Accelerator, true, err
	}
	return a, false, &exitError{exitNoAnswer, fmt.Errorf("accelerator %q is any of %q: say which", name, found)}
}

// meant returns the one of names that is name whatever the case and
// punctuation, else those of which name is one or more successive words.
func meant(name string, names []string) []string {
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

// withStored is unknown with the stored names among the nearest.
func withStored(unknown *catalog.UnknownError, stored []string) error {
	out := *unknown
	out.Nearest = named.Nearest(unknown.Name, slices.Concat(unknown.Nearest, stored), 3)
	return &out
}

func modelOf(t store.Tally) string       { return t.Model }
func sourceOf(t store.Tally) string      { return t.Source }
func acceleratorOf(t store.Tally) string { return t.Accelerator }

func isCatalogModel(name string) bool {
	_, err := catalog.Model(name)
	return err == nil
}

func isCatalogAccelerator(name string) bool {
	_, err := catalog.Accelerator(name)
	return err == nil
}

// storedOnly returns the names in the store that the catalog lacks, sorted.
func storedOnly(c *cli.Context, of func(store.Tally) string, known func(string) bool) ([]string, error) {
	tallies, err := storeSummary(c)
	var out []string
	for _, t := range tallies {
		out = append(out, of(t))
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), known), err
}

// errStop ends reading a store early.
var errStop = errors.New("enough read")

// firstRow returns the first stored row that f chooses.
func firstRow(c *cli.Context, f store.Filter) (row spec.Measurement, err error) {
	err = readStore(c, func(db *store.DB) error {
		for m, err := range db.Query(c.Context, f) {
			row = m
			return cmp.Or(err, errStop)
		}
		return fmt.Errorf("store: no row of %v %v", f.Models, f.Accelerators) // it was there a moment ago
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return row, err
}

// measuredAt fills in what the measurements closest to s were taken in: those of
// its model on its accelerator, else, on a machine that is known from
// measurements alone, all that were taken on it.
func (s *subject) measuredAt(c *cli.Context, machine bool) error {
	rows, err := storedRows(c, store.Filter{Accelerators: []string{s.accelerator.Name}})
	if err != nil || len(rows) == 0 {
		return err
	}
	if machine && !c.IsSet("node") {
		m := machineOf(rows)
		s.node = spec.Node{Name: "measured", Accelerator: s.accelerator.Name, Devices: m.PerNode, Link: m.Link}
		s.link = m.Link
	}
	if own := perfmodel.GroupByKey(rows)[spec.Key{Model: s.model.Name, Accelerator: s.accelerator.Name}]; len(own) > 0 {
		rows = own
		s.seqLen = common(rows, func(c spec.Config) int { return c.SeqLen })
	} else if !machine {
		return nil
	}
	s.framework = common(rows, func(c spec.Config) string { return c.Framework })
	s.precision = common(rows, func(c spec.Config) spec.Precision { return c.Plan.Precision })
	return nil
}
