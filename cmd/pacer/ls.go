package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// listing is one thing pacer ls lists: rows for people, objects for machines.
type listing struct {
	name, usage string
	header      []string
	rows        func(*cli.Context) (rows [][]string, objects []any, err error)
}

func lsCommand() *cli.Command {
	cmd := &cli.Command{
		Name:        "ls",
		Usage:       "list what pacer knows: models, accelerators, policies, stored measurements, ...",
		Description: "Names are found whatever their case and punctuation: llama3-8b, Llama-3-8B.",
	}
	for _, l := range listings() {
		cmd.Subcommands = append(cmd.Subcommands, l.command())
	}
	return cmd
}

func (l listing) command() *cli.Command {
	return &cli.Command{
		Name: l.name, Usage: l.usage, Before: noArgs,
		Action: func(c *cli.Context) error {
			if err := checkOutput(c); err != nil {
				return err
			}
			rows, objects, err := l.rows(c)
			if err != nil {
				return err
			}
			if objects == nil {
				objects = []any{}
			}
			table, err := csvOf(objects)
			if err != nil {
				return err
			}
			return emit(c, result{
				json: map[string]any{l.name: objects}, csv: table,
				table: func(w io.Writer) error { return writeTable(w, append([][]string{l.header}, rows...)) },
			})
		},
	}
}

func listings() []listing {
	return []listing{
		{"accelerators", "device types, by datasheet, and those measured here", []string{"name", "fp16 TFLOP/s", "GiB", "GB/s", "link GB/s", "also called"}, lsAccelerators},
		{"models", "neural networks with a known shape, and those measured here", []string{"name", "kind", "params", "active", "layers", "hidden", "seq", "also called"}, lsModels},
		{"nodes", "machines accelerators come in", []string{"name", "devices", "accelerator", "intra GB/s", "inter Gbit/s", "cpus", "GiB"}, lsNodes},
		{"families", "kinds of performance model", []string{"name", "what it is"}, lsFamilies},
		{"policies", "scheduling policies", []string{"name", "what it does"}, lsPolicies},
		{"placements", "ways to choose devices", []string{"name", "what it does"}, lsPlacements},
		{"admissions", "rules for who enters the queue", []string{"name", "what it does"}, lsAdmissions},
		{"compats", "simulators whose semantics --compat reproduces, and in what they differ", []string{"name", "what it does"}, lsCompats},
		{"frameworks", "training frameworks that --emit writes for", []string{"name", "what is written", "version"}, lsFrameworks},
		{"importers", "data sets that can be imported", []string{"name", "what it is", "from", "licence"}, lsImporters},
		{"measured", "sets of measurements that are built in", []string{"name", "rows", "date", "what it is", "machine"}, lsMeasured},
		{"measurements", "what is in the store", []string{"source", "model", "accelerator", "outcome", "rows"}, lsMeasurements},
		{"cards", "fitted performance models", []string{"model", "accelerator", "family", "fitted", "held out", "mean error"}, lsCards},
	}
}

func lsAccelerators(c *cli.Context) (rows [][]string, objects []any, err error) {
	d, err := newDesk(c)
	if err != nil {
		return nil, nil, err
	}
	entries, err := d.Accelerators(c.Context)
	for _, e := range entries {
		rows = append(rows, acceleratorCells(e.Accelerator, alsoCalled(e.Aliases, e.Measured)))
		objects = append(objects, e)
	}
	return rows, objects, err
}

// alsoCalled are the other names of an entry of the catalog.
func alsoCalled(aliases []string, measured bool) string {
	if measured {
		return "(measured here)"
	}
	return strings.Join(aliases, ", ")
}

func acceleratorCells(a spec.Accelerator, also string) []string {
	return []string{a.Name, figure(a.Peak(spec.FP16) / 1e12), figure(a.MemBytes / gib), figure(a.MemBps / 1e9), figure(a.ScaleUpBps / 1e9), also}
}

func lsModels(c *cli.Context) (rows [][]string, objects []any, err error) {
	d, err := newDesk(c)
	if err != nil {
		return nil, nil, err
	}
	entries, err := d.Models(c.Context)
	for _, e := range entries {
		rows = append(rows, modelCells(e.Model, alsoCalled(e.Aliases, e.Measured)))
		objects = append(objects, e)
	}
	return rows, objects, err
}

func modelCells(m spec.Model, also string) []string {
	return []string{m.Name, string(m.Kind), count(m.Params()), count(m.ActiveParams()),
		figure(float64(m.Layers)), figure(float64(m.Hidden)), figure(float64(m.SeqLen)), also}
}

func lsNodes(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, e := range catalog.Nodes() {
		n := e.Node
		rows = append(rows, []string{n.Name, itoa(n.Devices), n.Accelerator, figure(n.Link.IntraBps / 1e9),
			figure(n.Link.InterBps * 8 / 1e9), figure(float64(n.CPUs)), figure(n.HostBytes / gib)})
		objects = append(objects, struct {
			spec.Node
			Aliases []string `json:"aliases"`
			Default []string `json:"default_of"`
			Source  string   `json:"source"`
		}{n, list(e.Aliases), list(e.Default), e.Source})
	}
	return rows, objects, nil
}

func lsFamilies(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, f := range family.All() {
		rows, objects = describe(rows, objects, f.Name, f.Doc)
	}
	return rows, objects, nil
}

func lsPolicies(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, p := range policy.All() {
		rows, objects = describeOptions(rows, objects, p.Name, p.Doc, p.Options)
	}
	return rows, objects, nil
}

// describeOptions is describe for what has options.
func describeOptions(rows [][]string, objects []any, name, doc string, has []policy.Option) ([][]string, []any) {
	type option struct {
		Name    string `json:"name"`
		Default string `json:"default"`
		Doc     string `json:"doc"`
	}
	options := []option{}
	rows = append(rows, []string{name, doc})
	for _, o := range has {
		options = append(options, option{o.Name, o.Default, o.Doc})
		rows = append(rows, []string{"  :" + o.Name, fmt.Sprintf("%s (default %s)", o.Doc, cmp.Or(o.Default, "none"))})
	}
	return rows, append(objects, map[string]any{"name": name, "doc": doc, "options": options})
}

func lsPlacements(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, p := range place.All() {
		rows, objects = describe(rows, objects, p.Name, p.Doc)
	}
	return rows, objects, nil
}

func lsAdmissions(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, a := range policy.Admissions() {
		rows, objects = describeOptions(rows, objects, a.Name, a.Doc, a.Options)
	}
	return rows, objects, nil
}

func lsCompats(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, m := range compat.Modes() {
		rows = append(rows, []string{m.Name, m.Doc})
		quirks := []map[string]string{}
		for _, k := range m.Has() {
			rows = append(rows, []string{"  :" + k.Name, k.Doc})
			quirks = append(quirks, map[string]string{"name": k.Name, "doc": k.Doc})
		}
		objects = append(objects, map[string]any{"name": m.Name, "doc": m.Doc, "round_s": m.Round.Seconds(), "placement": m.Placement,
			"policies": m.Policies, "quirks": quirks})
	}
	return rows, objects, nil
}

func lsFrameworks(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, f := range launch.Frameworks() {
		rows = append(rows, []string{f.Name, f.Doc, f.Version})
		objects = append(objects, map[string]string{"name": f.Name, "doc": f.Doc, "version": f.Version, "file": f.File})
	}
	return rows, objects, nil
}

func lsImporters(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, i := range datasets.Importers() {
		rows = append(rows, []string{i.Name, i.Doc, i.URL, i.License})
		objects = append(objects, map[string]string{"name": i.Name, "doc": i.Doc, "url": i.URL, "commit": i.Commit, "license": i.License})
	}
	return rows, objects, nil
}

func lsMeasured(*cli.Context) (rows [][]string, objects []any, err error) {
	for _, s := range measured.Sets() {
		rows = append(rows, []string{s.Name, itoa(s.Rows), s.Date, s.Doc, s.Machine})
		objects = append(objects, s)
	}
	return rows, objects, nil
}

func lsMeasurements(c *cli.Context) (rows [][]string, objects []any, err error) {
	tallies, err := storeSummary(c)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range tallies {
		rows = append(rows, []string{t.Source, t.Model, t.Accelerator, string(t.Outcome), itoa(t.Rows)})
		objects = append(objects, t)
	}
	return rows, objects, nil
}

func lsCards(c *cli.Context) (rows [][]string, objects []any, err error) {
	reg, err := openRegistry(c)
	if err != nil {
		return nil, nil, err
	}
	cards, err := reg.List()
	if err != nil { // the cards that can be read are there all the same
		fmt.Fprintln(c.App.ErrWriter, "warning:", err)
	}
	for _, k := range cards {
		rows = append(rows, []string{k.Model, k.Accelerator, k.Family, itoa(k.NFit), itoa(k.NHeldOut), percent(k.MAPE)})
		objects = append(objects, k)
	}
	return rows, objects, nil
}

func describe(rows [][]string, objects []any, name, doc string) ([][]string, []any) {
	return append(rows, []string{name, doc}), append(objects, map[string]string{"name": name, "doc": doc})
}

// list makes a JSON array of a slice that may be nil.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// figure writes a figure for people, "-" when unknown.
func figure(v float64) string {
	if v == 0 {
		return "-"
	}
	if v == math.Trunc(v) && v < 1e9 {
		return fixed(v, 0)
	}
	return significant(v, 4)
}

// count writes a large number as 8.03 B, 355 M.
func count(v float64) string {
	switch {
	case v >= 1e9:
		return significant(v/1e9, 3) + " B"
	case v > 0:
		return significant(v/1e6, 3) + " M"
	}
	return "-"
}
