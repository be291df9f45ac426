package profiler

import (
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// Limits of the lists of a space; spec.Plan.CheckBounds has the same limits for plans.
const (
	maxListed = 1 << 20
	maxMicro  = 1 << 26
	maxSeq    = 1 << 26
)

func (r *campaignReader) readSpace(n yamlfile.Node) {
	s := &r.c.Space
	r.spaceKeys = n.Entries("shapes", "seq", "micro_batch", "accumulation", "tp", "pp", "zero", "sp",
		"recompute", "offload", "precision", "plans", "alone", "measured")
	for _, e := range r.spaceKeys {
		if !e.Value.Given() {
			r.Fail(e.At, "%s has no value: omit it for its default", e.Key)
			continue
		}
		switch values := e.Value; e.Key {
		case "shapes":
			s.Shapes, _ = each(values, readShape)
		case "seq":
			s.SeqLens, _ = each(values, wholes(1, maxSeq))
		case "micro_batch":
			s.MicroBatch, _ = each(values, wholes(1, maxMicro))
		case "accumulation":
			s.AccumSteps, _ = each(values, wholes(1, maxListed))
		case "tp":
			s.TP, r.tp = each(values, wholes(1, maxListed))
		case "pp":
			s.PP, r.pp = each(values, wholes(1, maxListed))
		case "zero":
			s.ZeRO, _ = each(values, wholes(0, 3))
		case "sp":
			s.SP, _ = each(values, yamlfile.Node.Flag)
		case "recompute":
			s.Recompute, _ = each(values, words(spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull))
		case "offload":
			s.Offload, _ = each(values, words(spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams))
		case "precision":
			s.Precision, _ = each(values, words(spec.Precisions()...))
		case "plans":
			s.Plans, r.plans = each(values, readPlan)
		case "alone":
			s.Alone = values.Flag()
		case "measured":
			s.Measured = values.Flag()
		}
	}
}

// each reads the elements of a list and returns them with their nodes.
func each[T any](n yamlfile.Node, read func(yamlfile.Node) T) ([]T, []yamlfile.Node) {
	nodes := n.List()
	out := make([]T, len(nodes))
	for i, e := range nodes {
		out[i] = read(e)
	}
	return out, nodes
}

func wholes(lo, hi int) func(yamlfile.Node) int {
	return func(n yamlfile.Node) int { return n.Whole(lo, hi) }
}

func words[T ~string](w ...T) func(yamlfile.Node) T {
	return func(n yamlfile.Node) T { return yamlfile.Word(n, w...) }
}

// readShape reads devices per node: 2, "8+8" or 2x8.
func readShape(n yamlfile.Node) spec.Shape {
	text := n.Text()
	if text == "" {
		return spec.Shape{}
	}
	s, err := spec.ParseShape(text)
	if err != nil {
		n.Fail("%s", unprefixed(err))
	} else if s.Total() > maxListed {
		n.Fail("shape %s has more than %d devices", text, maxListed)
	}
	return s
}

func readPlan(n yamlfile.Node) spec.Plan {
	text := n.Text()
	if text == "" {
		return spec.Plan{}
	}
	p, err := spec.ParsePlan(text)
	if err != nil {
		n.Fail("%s", unprefixed(err))
	}
	return p
}

// unprefixed returns the text of an error of package spec without the package name, since the message begins
// with a position in the file.
func unprefixed(err error) string { return strings.TrimPrefix(err.Error(), "spec: ") }
