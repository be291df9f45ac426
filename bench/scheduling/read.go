package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
)

// Set is a list of cells, with the policies and seeds to run on them.
type Set struct {
	Cells    []Cell
	Policies []policy.Spec // nil = DefaultPolicies
	Seeds    []uint64      // nil = TrainingSeeds
}

// Bounds of values in a file.
const (
	maxCells = 1000
	maxSeeds = 10_000
)

// drawKeys are the keys of cells that describe drawn workloads.
var drawKeys = []string{"nodes", "models", "jobs", "load", "arrivals", "sizes", "durations", "median_s", "sigma", "alpha", "max_s",
	"resample", "guaranteed", "time_scale"}

// ownKeys are keys of a cell that have no defaults.
var ownKeys = []string{"name", "variant_of"}

// cellKeys are the other keys of a cell but the flags of pacer simulate.
var cellKeys = append([]string{"workload", "cluster", "start_cost", "steps"}, drawKeys...)

// flagKeys are the settings of studies as keys of a cell, with '_' for '-'. start_cost is among the cellKeys.
var flagKeys = func() (out []string) {
	for _, name := range experiment.StudySettings {
		if key := strings.ReplaceAll(name, "-", "_"); key != "start_cost" {
			out = append(out, key)
		}
	}
	return out
}()

// Read reads a file of cells; file is its name in messages, which have line and column. The error joins all mistakes.
// Values of flags are checked when the cells run.
func Read(file string, text []byte) (Set, error) {
	r := &reader{File: yamlfile.File{Name: file, Package: "scheduling", Kind: "cells"}}
	top := r.Parse(text)
	if r.Count() == 0 {
		r.read(top)
	}
	return r.set, r.Err()
}

type reader struct {
	yamlfile.File
	set      Set
	defaults Cell
}

func (r *reader) read(top yamlfile.Node) {
	r.defaults = Cell{Draw: defaultDraw, Cluster: defaultCluster, Settings: map[string]string{}}
	var list yamlfile.Node
	for _, e := range top.Entries("defaults", "cells", "policies", "seeds") {
		switch e.Key {
		case "defaults":
			r.cell(e.Value, &r.defaults)
		case "cells":
			list = e.Value
		case "policies":
			r.policies(e.Value)
		case "seeds":
			seeds, err := ParseSeeds(e.Value.Text())
			if err != nil {
				e.Value.Fail("%v", err)
			}
			r.set.Seeds = seeds
		}
	}
	if !list.Given() {
		top.Fail("no cells, want a list like cells: [{name: busy, load: 1.2}]")
		return
	}
	for _, e := range list.List() {
		c := r.defaults
		c.Settings = maps.Clone(c.Settings)
		if of := e.Key("variant_of"); of.Given() {
			i := slices.IndexFunc(r.set.Cells, func(o Cell) bool { return o.Name == of.Text() })
			if i < 0 {
				of.Fail("variant_of %q is no cell above", of.Text())
				continue
			}
			c = r.set.Cells[i]
			c.Settings = maps.Clone(c.Settings)
		}
		c.Name = ""
		r.cell(e, &c, ownKeys...)
		r.check(e, &c)
		r.set.Cells = append(r.set.Cells, c)
	}
	if n := len(r.set.Cells); n > maxCells {
		list.Fail("%d cells, want at most %d", n, maxCells)
	}
}

// policies reads a list of policies.
func (r *reader) policies(n yamlfile.Node) {
	var names []string
	for _, p := range n.List() {
		names = append(names, p.Text())
	}
	specs, err := builtin.Policies.Parse(strings.Join(names, ","))
	if err != nil {
		n.Fail("%s", strings.TrimPrefix(err.Error(), "policy: "))
	}
	r.set.Policies = specs
}

// cell sets the keys of a mapping.
func (r *reader) cell(n yamlfile.Node, c *Cell, own ...string) {
	for _, e := range n.Entries(slices.Concat(own, cellKeys, flagKeys)...) {
		if !e.Value.Given() {
			r.Fail(e.At, "%s has no value: leave it out for its default", e.Key)
			continue
		}
		switch v := e.Value; e.Key {
		case "name":
			c.Name = v.Text()
		case "workload":
			c.Workload = v.Text()
		case "cluster":
			c.Cluster = v.Text()
		case "nodes":
			c.Cluster = fmt.Sprintf("%dx8xA800", v.Whole(1, 100_000))
		case "start_cost":
			c.Settings["start-cost"] = strconv.FormatFloat(v.Number(0, true, 1e6), 'g', -1, 64)
		case "steps":
			c.UnknownSteps = yamlfile.Word(v, "known", "unknown") == "unknown"
		case "variant_of":
			c.VariantOf = v.Text()
		case "time_scale":
			c.TimeScale = v.Number(0, false, 1000)
		default:
			if slices.Contains(flagKeys, e.Key) {
				c.Settings[strings.ReplaceAll(e.Key, "_", "-")] = v.Text()
				continue
			}
			c.Draw.set(e.Key, v)
		}
	}
}

// set sets the field of a key.
func (d *Draw) set(key string, v yamlfile.Node) {
	switch key {
	case "models":
		d.Models = v.Text()
	case "jobs":
		d.Jobs = v.Whole(1, 1_000_000)
	case "load":
		d.Load = v.Number(0, false, 100)
	case "arrivals":
		d.Arrivals = v.Text()
	case "sizes":
		d.Sizes = v.Text()
	case "durations":
		d.Durations = string(yamlfile.Word(v, "log-normal", "pareto", "uniform"))
	case "median_s":
		d.MedianSec = v.Number(0, false, 1e9)
	case "sigma":
		d.Sigma = v.Number(0, false, 10)
	case "alpha":
		d.Alpha = v.Number(1, false, 100)
	case "max_s":
		d.MaxSec = v.Number(0, false, 1e9)
	case "resample":
		d.Resample = v.Text()
	case "guaranteed":
		d.Guaranteed = v.Number(0, true, 1)
	}
}

// check reports keys that are missing or contradict each other.
func (r *reader) check(n yamlfile.Node, c *Cell) {
	switch {
	case c.Name == "":
		n.Fail("a cell without a name, want one like {name: busy, load: 1.2}")
	case slices.ContainsFunc(r.set.Cells, func(o Cell) bool { return o.Name == c.Name }):
		n.Fail("a second cell %s: give it another name", c.Name)
	}
	if c.Draw.Arrivals == arriveOnce && n.Key("load").Given() {
		n.Key("load").Fail("jobs that arrive once have no load: leave it out")
	}
	if c.Workload == "" {
		return
	}
	for _, key := range drawKeys {
		if v := n.Key(key); v.Given() && key != "nodes" {
			v.Fail("%s is of drawn workloads, and cell %s has the workload %s: leave one out", key, c.Name, c.Workload)
		}
	}
}

// ParseSeeds reads A-B, or a single seed.
func ParseSeeds(text string) ([]uint64, error) {
	a, b, ranged := strings.Cut(text, "-")
	if !ranged {
		b = a
	}
	from, err1 := strconv.ParseUint(a, 10, 62)
	to, err2 := strconv.ParseUint(b, 10, 62)
	if err1 != nil || err2 != nil || to < from || to-from >= maxSeeds {
		return nil, fmt.Errorf("seeds %q are not A-B with A <= B, at most %d of them", text, maxSeeds)
	}
	var out []uint64
	for s := from; s <= to; s++ {
		out = append(out, s)
	}
	return out, nil
}

// Only returns the cells of some names, each after the cell that it is a variant of.
func Only(cells []Cell, names []string) ([]Cell, error) {
	wanted := map[string]bool{}
	var known []string
	for _, c := range cells {
		known = append(known, c.Name)
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("cell %q is unknown, nearest: %s", name, strings.Join(named.Nearest(name, known, 3), ", "))
		}
		wanted[name], wanted[cells[i].VariantOf] = true, true
	}
	return slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return !wanted[c.Name] }), nil
}

// AddWorkload adds a cell of recorded jobs to cells, under the name of its file. truth "" is
// the default of pacer simulate.
func AddWorkload(cells []Cell, workload, cluster, truth string) ([]Cell, error) {
	c := Cell{Name: workload, Workload: workload, Cluster: cluster, Settings: map[string]string{}}
	if truth != "" {
		c.Settings["truth"] = truth
	}
	if slices.ContainsFunc(cells, func(o Cell) bool { return o.Name == c.Name }) {
		return nil, fmt.Errorf("scheduling: workload %s is given twice", workload)
	}
	return append(cells, c), nil
}
