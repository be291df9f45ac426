package listing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
)

// listing is one kind of things that pacer ls lists.
type listing struct {
	Name, Usage string
	Header      []string
	// Entries reads the entries, some of them from a data directory.
	Entries func(context.Context, *datadir.Dir) ([]entry, error)
}

// entry is one listed thing.
type entry struct {
	Names  []string   // its names, the main one first
	Lines  [][]string // of a table
	Brief  [][]string // of a table with other entries; nil = Lines
	Object any        // for JSON and CSV
}

// has reports whether every word is part of a name, whatever the case and punctuation.
func (e *entry) has(words []string) bool {
	for _, w := range words {
		if !slices.ContainsFunc(e.Names, func(name string) bool { return strings.Contains(named.Fold(name), named.Fold(w)) }) {
			return false
		}
	}
	return true
}

// is reports whether the words are the main name.
func (e *entry) is(words []string) bool {
	return named.Fold(e.Names[0]) == named.Fold(strings.Join(words, ""))
}

// find returns the entries that have all words, sorted by name.
func (l *listing) find(ctx context.Context, d *datadir.Dir, words []string) ([]entry, error) {
	entries, err := l.Entries(ctx, d)
	found := slices.DeleteFunc(entries, func(e entry) bool { return !e.has(words) })
	slices.SortStableFunc(found, func(a, b entry) int { return slices.CompareFunc(a.Names, b.Names, named.Compare) })
	return found, err
}

// all are the listings, by name.
func all() []listing {
	return []listing{
		{"accelerators", "device types, of datasheets and of stored measurements", []string{"name", "fp16 TFLOP/s", "GiB", "GB/s", "link GB/s", "also called"}, accelerators},
		{"models", "neural networks with a known shape, and those of stored measurements", []string{"name", "kind", "params", "active", "layers", "hidden", "seq", "also called"}, models},
		{"nodes", "machines with accelerators", []string{"name", "devices", "accelerator", "intra GB/s", "inter Gbit/s", "cpus", "GiB"}, nodes},
		{"families", "kinds of performance model", []string{"name", "what it is"}, families},
		{"policies", "scheduling policies", []string{"name", "what it does"}, policies},
		{"placements", "ways to choose devices", []string{"name", "what it does"}, placements},
		{"admissions", "rules that admit jobs to the queue", []string{"name", "what it does"}, admissions},
		{"compats", "simulators that --compat reproduces, and their differences", []string{"name", "what it does"}, compats},
		{"frameworks", "training frameworks that --emit writes for", []string{"name", "what is written", "version", "training stack"}, frameworks},
		{"stacks", "training stacks that --framework names, their releases, and what changed with each", []string{"name", "version", "date", "parts that changed", "also called"}, stacks},
		{"parts", "parts of a training stack that --stack sets, and their values", []string{"part", "value", "what it is"}, parts},
		{"importers", "data sets that can be imported", []string{"name", "what it is", "from", "licence"}, importers},
		{"measured", "sets of measurements that are built in", []string{"name", "rows", "date", "what it is", "machine"}, measuredSets},
		{"measurements", "stored measurements", []string{"source", "model", "accelerator", "outcome", "rows"}, measurements},
		{"cards", "fitted performance models", []string{"model", "accelerator", "family", "fitted", "held out", "mean error"}, cards},
	}
}

func accelerators(ctx context.Context, d *datadir.Dir) (out []entry, err error) {
	r, err := d.Resolver()
	if err != nil {
		return nil, err
	}
	known, err := r.Accelerators(ctx)
	for _, e := range known {
		out = append(out, entry{Names: slices.Concat([]string{e.Name}, e.Aliases, []string{e.Vendor}),
			Lines: [][]string{acceleratorCells(e.Accelerator, alsoCalled(e.Aliases, e.Measured))}, Object: e})
	}
	return out, err
}

// alsoCalled are the other names of an entry of the catalog.
func alsoCalled(aliases []string, measured bool) string {
	if measured {
		return "(measured here)"
	}
	return strings.Join(aliases, ", ")
}

func acceleratorCells(a spec.Accelerator, also string) []string {
	return []string{a.Name, number.Figure(a.Peak(spec.FP16) / 1e12), number.Figure(a.MemBytes / memory.GiB), number.Figure(a.MemBps / 1e9), number.Figure(a.ScaleUpBps / 1e9), also}
}

func models(ctx context.Context, d *datadir.Dir) (out []entry, err error) {
	r, err := d.Resolver()
	if err != nil {
		return nil, err
	}
	known, err := r.Models(ctx)
	for _, e := range known {
		out = append(out, entry{Names: slices.Concat([]string{e.Name}, e.Aliases, []string{string(e.Kind)}),
			Lines: [][]string{modelCells(e.Model, alsoCalled(e.Aliases, e.Measured))}, Object: e})
	}
	return out, err
}

func modelCells(m spec.Model, also string) []string {
	return []string{m.Name, string(m.Kind), number.Count(m.Params()), number.Count(m.ActiveParams()),
		number.Figure(float64(m.Layers)), number.Figure(float64(m.Hidden)), number.Figure(float64(m.SeqLen)), also}
}

func nodes(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, e := range catalog.Nodes() {
		n := e.Node
		out = append(out, entry{Names: slices.Concat([]string{n.Name}, e.Aliases, []string{n.Accelerator}),
			Lines: [][]string{{n.Name, strconv.Itoa(n.Devices), n.Accelerator, number.Figure(n.Link.IntraBps / 1e9),
				number.Figure(n.Link.InterBps * 8 / 1e9), number.Figure(float64(n.CPUs)), number.Figure(n.HostBytes / memory.GiB)}},
			Object: struct {
				spec.Node
				Aliases []string `json:"aliases"`
				Default []string `json:"default_of"`
				Source  string   `json:"source"`
			}{n, query.OrEmpty(e.Aliases), query.OrEmpty(e.Default), e.Source}})
	}
	return out, nil
}

func families(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, f := range family.All() {
		out = append(out, described(f.Name, f.Doc))
	}
	return out, nil
}

func policies(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, p := range builtin.Policies.All() {
		out = append(out, withOptions(p.Name, p.Doc, p.Options))
	}
	return out, nil
}

func placements(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, p := range place.All() {
		out = append(out, described(p.Name, p.Doc))
	}
	return out, nil
}

func admissions(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, a := range admission.All() {
		out = append(out, withOptions(a.Name, a.Doc, a.Options))
	}
	return out, nil
}

// described is an entry with a name and a description.
func described(name, doc string) entry {
	return entry{Names: []string{name}, Lines: [][]string{{name, doc}}, Object: map[string]string{"name": name, "doc": doc}}
}

// withOptions is an entry with a name, a description and options.
func withOptions(name, doc string, has []policy.Option) entry {
	type option struct {
		Name    string `json:"name"`
		Default string `json:"default"`
		Range   string `json:"range"`
		Doc     string `json:"doc"`
	}
	options := []option{}
	lines := [][]string{{name, doc}}
	var names []string
	for _, o := range has {
		options, names = append(options, option{o.Name, o.Default, o.Range(), o.Doc}), append(names, o.Name)
		lines = append(lines, []string{"  :" + o.Name, fmt.Sprintf("%s (%s; default %s)", o.Doc, cmp.Or(o.Range(), "file"), cmp.Or(o.Default, "none"))})
	}
	e := entry{Names: []string{name}, Lines: lines, Object: map[string]any{"name": name, "doc": doc, "options": options}}
	if len(names) > 0 {
		e.Brief = [][]string{{name, doc + "; options: " + strings.Join(names, ", ")}}
	}
	return e
}

func compats(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, m := range compat.Modes() {
		lines, quirks := [][]string{{m.Name, m.Doc}}, []map[string]string{}
		for _, k := range m.Has() {
			lines = append(lines, []string{"  :" + k.Name, k.Doc})
			quirks = append(quirks, map[string]string{"name": k.Name, "doc": k.Doc})
		}
		out = append(out, entry{Names: []string{m.Name}, Lines: lines, Object: map[string]any{"name": m.Name, "doc": m.Doc, "round_s": m.Round.Seconds(), "start_cost_s": m.StartCost.Seconds(),
			"placement": m.Placement, "policies": m.Policies, "quirks": quirks}})
	}
	return out, nil
}

func frameworks(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, f := range launch.Frameworks() {
		out = append(out, entry{Names: []string{f.Name}, Lines: [][]string{{f.Name, f.Doc, f.Version, f.Stack}},
			Object: map[string]string{"name": f.Name, "doc": f.Doc, "version": f.Version, "stack": f.Stack, "file": f.File}})
	}
	return out, nil
}

func importers(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, i := range datasets.Importers() {
		out = append(out, entry{Names: []string{i.Name}, Lines: [][]string{{i.Name, i.Doc, i.URL, i.License}},
			Object: map[string]string{"name": i.Name, "doc": i.Doc, "url": i.URL, "commit": i.Commit, "license": i.License}})
	}
	return out, nil
}

func measuredSets(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, s := range measured.Sets() {
		out = append(out, entry{Names: []string{s.Name}, Lines: [][]string{{s.Name, strconv.Itoa(s.Rows), s.Date, s.Doc, s.Machine}}, Object: s})
	}
	return out, nil
}

func measurements(ctx context.Context, d *datadir.Dir) (out []entry, err error) {
	tallies, err := d.Summary(ctx)
	for _, t := range tallies {
		key := []string{t.Source, t.Model, t.Accelerator, string(t.Outcome)}
		out = append(out, entry{Names: key, Lines: [][]string{append(key[:len(key):len(key)], strconv.Itoa(t.Rows))}, Object: t})
	}
	return out, err
}

func cards(ctx context.Context, d *datadir.Dir) (out []entry, err error) {
	reg, err := d.Fitted()
	if err != nil {
		return nil, err
	}
	cards, err := reg.List()
	if err != nil { // the other cards are listed
		fmt.Fprintln(d.Log, "warning:", err)
	}
	for _, k := range cards {
		key := []string{k.Model, k.Accelerator, k.Family}
		out = append(out, entry{Names: key, Lines: [][]string{append(key[:len(key):len(key)], strconv.Itoa(k.NFit), strconv.Itoa(k.NHeldOut), number.Percent(k.MAPE))}, Object: k})
	}
	return out, nil
}
