package planner

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Measured is the Space of configurations that have been measured. A Request
// without a Shape matches every measured shape of exactly that many devices; one
// with a Shape matches that shape, whatever its CPUs and host memory; one with a
// Plan matches that plan. Tokens per sample must be equal where both are known.
// Precision and framework are the measured ones. Immutable and safe for concurrent
// use.
type Measured struct {
	by map[measuredKey][]spec.Config // sorted by devices, shape, plan; no duplicates
}

// measuredKey uses names, since a request may describe its model in more detail
// than a measurement.
type measuredKey struct {
	spec.Key
	batch int
}

// NewMeasured returns the space of configs, with normal plans and without
// duplicates. It does not keep the slice.
func NewMeasured(configs []spec.Config) *Measured {
	m := &Measured{by: map[measuredKey][]spec.Config{}}
	for _, c := range configs {
		if c.Alone() { // has not run as a whole
			continue
		}
		c.Plan = c.Plan.Normal()
		k := measuredKey{c.Key(), c.Plan.GlobalBatch()}
		m.by[k] = append(m.by[k], c)
	}
	for k, cs := range m.by {
		slices.SortStableFunc(cs, compareConfigs)
		m.by[k] = slices.Compact(cs)
	}
	return m
}

func compareConfigs(a, b spec.Config) int {
	return cmp.Or(cmp.Compare(a.Plan.Devices(), b.Plan.Devices()), cmp.Compare(a.Shape.Devices, b.Shape.Devices),
		comparePlans(&a.Plan, &b.Plan), cmp.Compare(a.SeqLen, b.SeqLen), cmp.Compare(a.Framework, b.Framework),
		cmp.Compare(a.Shape.CPUs, b.Shape.CPUs), cmp.Compare(a.Shape.HostBytes, b.Shape.HostBytes))
}

// Proven returns true: every configuration has run.
func (m *Measured) Proven() bool { return true }

// Configs yields the measured configurations of r, by shape and plan.
func (m *Measured) Configs(_ context.Context, r Request) iter.Seq[spec.Config] {
	return func(yield func(spec.Config) bool) {
		for _, c := range m.of(r) {
			if r.Shape.Devices != "" && c.Shape.Devices != r.Shape.Devices || r.Plan != nil && c.Plan != *r.Plan || otherSeq(c, r) {
				continue
			}
			if !yield(c) {
				return
			}
		}
	}
}

// otherSeq reports whether c ran with other tokens per sample than r asks for.
func otherSeq(c spec.Config, r Request) bool {
	want := cmp.Or(r.SeqLen, r.Model.SeqLen)
	return want > 0 && c.Seq() > 0 && c.Seq() != want
}

// of returns the configurations with r's model, accelerator, batch and devices.
func (m *Measured) of(r Request) []spec.Config {
	all := m.by[measuredKey{spec.Key{Model: r.Model.Name, Accelerator: r.Accelerator.Name}, r.GlobalBatch}]
	lo, _ := slices.BinarySearchFunc(all, r.Devices, byDevices)
	hi, _ := slices.BinarySearchFunc(all, r.Devices+1, byDevices)
	return all[lo:hi]
}

func byDevices(c spec.Config, n int) int { return cmp.Compare(c.Plan.Devices(), n) }

// Counts returns the numbers of devices measured for a model, accelerator and
// global batch, ascending.
func (m *Measured) Counts(k spec.Key, globalBatch int) []int {
	var out []int
	for _, c := range m.by[measuredKey{k, globalBatch}] {
		out = append(out, c.Plan.Devices())
	}
	return slices.Compact(out)
}

// WhyNone names the nearest measurements to r.
func (m *Measured) WhyNone(r Request) string {
	k := spec.Key{Model: r.Model.Name, Accelerator: r.Accelerator.Name}
	if counts := m.Counts(k, r.GlobalBatch); len(counts) > 0 {
		if cs := m.of(r); len(cs) > 0 {
			return fmt.Sprintf("%s was measured on %d devices, but not with this plan and shape and %d tokens per sample (%s on %s with %d is)",
				k, r.Devices, cmp.Or(r.SeqLen, r.Model.SeqLen), cs[0].Plan, cs[0].Shape.Devices, cs[0].Seq())
		}
		return fmt.Sprintf("%s with global batch %d was measured on %v devices, not %d", k, r.GlobalBatch, counts, r.Devices)
	}
	var batches []int
	for mk := range m.by {
		if mk.Key == k {
			batches = append(batches, mk.batch)
		}
	}
	slices.Sort(batches)
	if len(batches) > 0 {
		return fmt.Sprintf("%s was measured with global batches %v, not %d", k, batches, r.GlobalBatch)
	}
	return fmt.Sprintf("%s was not measured", k)
}
