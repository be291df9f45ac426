package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
)

// listing is one thing pacer ls lists.
type listing struct {
	name, usage string
	header      []string
	entries     func(*cli.Context) ([]entry, error)
}

// entry is one of what is listed.
type entry struct {
	names  []string   // it is found by: its own first
	lines  [][]string // for people
	brief  []string   // for people, who did not ask for this one alone; nil = lines
	object any        // for machines
}

func lsCommand() *cli.Command {
	cmd := &cli.Command{
		Name:  "ls",
		Usage: "list known names: models, accelerators, policies, stored measurements, ...",
		Description: `Names are found whatever their case and punctuation: llama3-8b, Llama-3-8B.
With words, entries that have each word in one of their names are listed:

   pacer ls models llama 70b`,
	}
	for _, l := range listings() {
		cmd.Subcommands = append(cmd.Subcommands, l.command())
	}
	return cmd
}

func (l listing) command() *cli.Command {
	return &cli.Command{Name: l.name, Usage: l.usage, ArgsUsage: "[WORD...]", Action: l.run,
		Description: "With words, entries that have each word in one of their names."}
}

func (l listing) run(c *cli.Context) error {
	for _, w := range c.Args().Slice() {
		if named.Fold(w) == "" {
			return fail.Usagef("ls %s: %q has no letter or digit to find names by", l.name, w)
		}
	}
	entries, err := l.entries(c)
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(entries, func(e entry) bool { return !e.has(c.Args().Slice()) })
	slices.SortStableFunc(found, func(a, b entry) int { return slices.CompareFunc(a.names, b.names, named.Compare) })
	if err := l.emit(c, found); err != nil {
		return err
	}
	if len(found) == 0 && c.Args().Present() {
		return fail.NoAnswerf("ls %s: no name has %q (all: pacer ls %[1]s)", l.name, strings.Join(c.Args().Slice(), " "))
	}
	return nil
}

// has reports whether every word is part of a name of e, whatever the case and
// punctuation.
func (e *entry) has(words []string) bool {
	for _, w := range words {
		if !slices.ContainsFunc(e.names, func(name string) bool { return strings.Contains(named.Fold(name), named.Fold(w)) }) {
			return false
		}
	}
	return true
}

func (l listing) emit(c *cli.Context, entries []entry) error {
	objects, lines, short := []any{}, [][]string{l.header}, false
	for _, e := range entries {
		objects = append(objects, e.object)
		if e.brief == nil || len(entries) == 1 || e.is(c.Args().Slice()) {
			lines = append(lines, e.lines...)
			continue
		}
		lines, short = append(lines, e.brief), true
	}
	table, err := console.CSV(objects)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{
		JSON: map[string]any{l.name: objects}, CSV: table,
		Table: func(w io.Writer) error {
			err := console.WriteTable(w, lines)
			if err == nil && short {
				_, err = fmt.Fprintf(w, "\npacer ls %s NAME prints the options of one.\n", l.name)
			}
			return err
		},
	})
}

// is reports whether the words are the name of e.
func (e *entry) is(words []string) bool {
	return named.Fold(e.names[0]) == named.Fold(strings.Join(words, ""))
}

func listings() []listing {
	return []listing{
		{"accelerators", "device types, of datasheets and of stored measurements", []string{"name", "fp16 TFLOP/s", "GiB", "GB/s", "link GB/s", "also called"}, lsAccelerators},
		{"models", "neural networks with a known shape, and those of stored measurements", []string{"name", "kind", "params", "active", "layers", "hidden", "seq", "also called"}, lsModels},
		{"nodes", "machines with accelerators", []string{"name", "devices", "accelerator", "intra GB/s", "inter Gbit/s", "cpus", "GiB"}, lsNodes},
		{"families", "kinds of performance model", []string{"name", "what it is"}, lsFamilies},
		{"policies", "scheduling policies", []string{"name", "what it does"}, lsPolicies},
		{"placements", "ways to choose devices", []string{"name", "what it does"}, lsPlacements},
		{"admissions", "rules that admit jobs to the queue", []string{"name", "what it does"}, lsAdmissions},
		{"compats", "simulators that --compat reproduces, and their differences", []string{"name", "what it does"}, lsCompats},
		{"frameworks", "training frameworks that --emit writes for", []string{"name", "what is written", "version"}, lsFrameworks},
		{"importers", "data sets that can be imported", []string{"name", "what it is", "from", "licence"}, lsImporters},
		{"measured", "sets of measurements that are built in", []string{"name", "rows", "date", "what it is", "machine"}, lsMeasured},
		{"measurements", "stored measurements", []string{"source", "model", "accelerator", "outcome", "rows"}, lsMeasurements},
		{"cards", "fitted performance models", []string{"model", "accelerator", "family", "fitted", "held out", "mean error"}, lsCards},
	}
}

func lsAccelerators(c *cli.Context) (out []entry, err error) {
	d, err := dataDir(c).Resolver()
	if err != nil {
		return nil, err
	}
	known, err := d.Accelerators(c.Context)
	for _, e := range known {
		out = append(out, entry{names: slices.Concat([]string{e.Name}, e.Aliases, []string{e.Vendor}),
			lines: [][]string{acceleratorCells(e.Accelerator, alsoCalled(e.Aliases, e.Measured))}, object: e})
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
	return []string{a.Name, console.Figure(a.Peak(spec.FP16) / 1e12), console.Figure(a.MemBytes / gib), console.Figure(a.MemBps / 1e9), console.Figure(a.ScaleUpBps / 1e9), also}
}

func lsModels(c *cli.Context) (out []entry, err error) {
	d, err := dataDir(c).Resolver()
	if err != nil {
		return nil, err
	}
	known, err := d.Models(c.Context)
	for _, e := range known {
		out = append(out, entry{names: slices.Concat([]string{e.Name}, e.Aliases, []string{string(e.Kind)}),
			lines: [][]string{modelCells(e.Model, alsoCalled(e.Aliases, e.Measured))}, object: e})
	}
	return out, err
}

func modelCells(m spec.Model, also string) []string {
	return []string{m.Name, string(m.Kind), console.Count(m.Params()), console.Count(m.ActiveParams()),
		console.Figure(float64(m.Layers)), console.Figure(float64(m.Hidden)), console.Figure(float64(m.SeqLen)), also}
}

func lsNodes(*cli.Context) (out []entry, err error) {
	for _, e := range catalog.Nodes() {
		n := e.Node
		out = append(out, entry{names: slices.Concat([]string{n.Name}, e.Aliases, []string{n.Accelerator}),
			lines: [][]string{{n.Name, strconv.Itoa(n.Devices), n.Accelerator, console.Figure(n.Link.IntraBps / 1e9),
				console.Figure(n.Link.InterBps * 8 / 1e9), console.Figure(float64(n.CPUs)), console.Figure(n.HostBytes / gib)}},
			object: struct {
				spec.Node
				Aliases []string `json:"aliases"`
				Default []string `json:"default_of"`
				Source  string   `json:"source"`
			}{n, list(e.Aliases), list(e.Default), e.Source}})
	}
	return out, nil
}

func lsFamilies(*cli.Context) (out []entry, err error) {
	for _, f := range family.All() {
		out = append(out, described(f.Name, f.Doc))
	}
	return out, nil
}

func lsPolicies(*cli.Context) (out []entry, err error) {
	for _, p := range builtin.Policies.All() {
		out = append(out, withOptions(p.Name, p.Doc, p.Options))
	}
	return out, nil
}

func lsPlacements(*cli.Context) (out []entry, err error) {
	for _, p := range place.All() {
		out = append(out, described(p.Name, p.Doc))
	}
	return out, nil
}

func lsAdmissions(*cli.Context) (out []entry, err error) {
	for _, a := range admission.All() {
		out = append(out, withOptions(a.Name, a.Doc, a.Options))
	}
	return out, nil
}

// described is an entry that has a name and says what it is.
func described(name, doc string) entry {
	return entry{names: []string{name}, lines: [][]string{{name, doc}}, object: map[string]string{"name": name, "doc": doc}}
}

// withOptions is described for what has options.
func withOptions(name, doc string, has []policy.Option) entry {
	type option struct {
		Name    string `json:"name"`
		Default string `json:"default"`
		Doc     string `json:"doc"`
	}
	options := []option{}
	lines := [][]string{{name, doc}}
	var names []string
	for _, o := range has {
		options, names = append(options, option{o.Name, o.Default, o.Doc}), append(names, o.Name)
		lines = append(lines, []string{"  :" + o.Name, fmt.Sprintf("%s (default %s)", o.Doc, cmp.Or(o.Default, "none"))})
	}
	e := entry{names: []string{name}, lines: lines, object: map[string]any{"name": name, "doc": doc, "options": options}}
	if len(names) > 0 {
		e.brief = []string{name, doc + "; options: " + strings.Join(names, ", ")}
	}
	return e
}

func lsCompats(*cli.Context) (out []entry, err error) {
	for _, m := range compat.Modes() {
		lines, quirks := [][]string{{m.Name, m.Doc}}, []map[string]string{}
		for _, k := range m.Has() {
			lines = append(lines, []string{"  :" + k.Name, k.Doc})
			quirks = append(quirks, map[string]string{"name": k.Name, "doc": k.Doc})
		}
		out = append(out, entry{names: []string{m.Name}, lines: lines, object: map[string]any{"name": m.Name, "doc": m.Doc, "round_s": m.Round.Seconds(), "start_cost_s": m.StartCost.Seconds(),
			"placement": m.Placement, "policies": m.Policies, "quirks": quirks}})
	}
	return out, nil
}

func lsFrameworks(*cli.Context) (out []entry, err error) {
	for _, f := range launch.Frameworks() {
		out = append(out, entry{names: []string{f.Name}, lines: [][]string{{f.Name, f.Doc, f.Version}},
			object: map[string]string{"name": f.Name, "doc": f.Doc, "version": f.Version, "file": f.File}})
	}
	return out, nil
}

func lsImporters(*cli.Context) (out []entry, err error) {
	for _, i := range datasets.Importers() {
		out = append(out, entry{names: []string{i.Name}, lines: [][]string{{i.Name, i.Doc, i.URL, i.License}},
			object: map[string]string{"name": i.Name, "doc": i.Doc, "url": i.URL, "commit": i.Commit, "license": i.License}})
	}
	return out, nil
}

func lsMeasured(*cli.Context) (out []entry, err error) {
	for _, s := range measured.Sets() {
		out = append(out, entry{names: []string{s.Name}, lines: [][]string{{s.Name, strconv.Itoa(s.Rows), s.Date, s.Doc, s.Machine}}, object: s})
	}
	return out, nil
}

func lsMeasurements(c *cli.Context) (out []entry, err error) {
	tallies, err := dataDir(c).Summary(c.Context)
	for _, t := range tallies {
		key := []string{t.Source, t.Model, t.Accelerator, string(t.Outcome)}
		out = append(out, entry{names: key, lines: [][]string{append(key[:len(key):len(key)], strconv.Itoa(t.Rows))}, object: t})
	}
	return out, err
}

func lsCards(c *cli.Context) (out []entry, err error) {
	reg, err := dataDir(c).Fitted()
	if err != nil {
		return nil, err
	}
	cards, err := reg.List()
	if err != nil { // the cards that can be read are there all the same
		fmt.Fprintln(c.App.ErrWriter, "warning:", err)
	}
	for _, k := range cards {
		key := []string{k.Model, k.Accelerator, k.Family}
		out = append(out, entry{names: key, lines: [][]string{append(key[:len(key):len(key)], strconv.Itoa(k.NFit), strconv.Itoa(k.NHeldOut), console.Percent(k.MAPE))}, object: k})
	}
	return out, nil
}

// list makes a JSON array of a slice that may be nil.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
