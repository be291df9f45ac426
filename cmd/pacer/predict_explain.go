package main

import (
	"fmt"
	"io"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// explainer is implemented by performance models that know where the time goes.
type explainer interface {
	// Explain returns the predicted step time of c by cause.
	Explain(c spec.Config) (family.Parts, error)
}

// explainerOf returns p as one, or says that its family cannot.
func explainerOf(p perfmodel.Predictor, by string) (explainer, error) {
	e, ok := p.(explainer)
	if !ok {
		return nil, usagef("predict: --explain: a model of family %s cannot say where the time goes; --family analytic and hybrid can", by)
	}
	return e, nil
}

// portion is one part of a step or of memory.
type portion struct {
	name string // of the JSON field, and of the CSV column but for its unit
	what string
	size float64 // seconds or GiB
}

// explanation is where a predicted step's time and memory go.
type explanation struct {
	sec []portion
	gib []portion // nil where memory is not known
}

// explain breaks down the prediction of c, with memory as cal has it.
func explain(e explainer, cal *memory.Calibration, c spec.Config) (explanation, error) {
	p, err := e.Explain(c)
	if err != nil {
		return explanation{}, err
	}
	out := explanation{sec: timeShares(p)}
	if m, err := cal.For(c); err == nil {
		out.gib = memoryShares(m.Plan(c.Plan))
	}
	return out, nil
}

func timeShares(p family.Parts) []portion {
	return []portion{
		{"compute", "forward and backward", p.Compute},
		{"recompute", "forward work done again", p.Recompute},
		{"tp", "exposed tensor parallel traffic", p.TP},
		{"cp", "exposed context parallel traffic", p.CP},
		{"ep", "exposed expert parallel traffic", p.EP},
		{"pipeline", "pipeline bubble and transfers between stages", p.Pipeline},
		{"dp", "exposed data parallel and ZeRO traffic", p.DP},
		{"optimizer", "optimizer", p.Optimizer},
		{"offload", "host link and optimizer on CPUs", p.Offload},
		{"launch", "waiting for kernel launches", p.Launch},
		{"fixed", "fixed cost of a step", p.Fixed},
	}
}

func memoryShares(b memory.Breakdown) []portion {
	return []portion{
		{"parameters", "weights", b.Parameters / gib},
		{"gradients", "gradients", b.Gradients / gib},
		{"optimizer", "optimizer states", b.Optimizer / gib},
		{"gathered", "gathered shards in hand", b.Gathered / gib},
		{"activations", "activations kept for the backward pass", b.Activations / gib},
		{"working", "the layer or logits being worked on", b.Working / gib},
		{"buffers", "communication buffers", b.Buffers / gib},
		{"overhead", "context, communicators, fragmentation", b.Overhead / gib},
		{"host", "host memory, not on the device", b.HostBytes / gib},
	}
}

// json is the contract's form.
func (e *explanation) json() map[string]map[string]float64 {
	out := map[string]map[string]float64{"step_s": byName(e.sec)}
	if e.gib != nil {
		out["mem_gib"] = byName(e.gib)
	}
	return out
}

func byName(shares []portion) map[string]float64 {
	out := make(map[string]float64, len(shares))
	for _, s := range shares {
		out[s.name] = s.size
	}
	return out
}

// explainColumns are the columns that --explain adds to a CSV.
func explainColumns() []string {
	var out []string
	for _, s := range timeShares(family.Parts{}) {
		out = append(out, s.name+"_s")
	}
	for _, s := range memoryShares(memory.Breakdown{}) {
		out = append(out, s.name+"_gib")
	}
	return out
}

// cells are the cells of explainColumns; those that are not known are blank.
func (e *explanation) cells() []string {
	var out []string
	for _, s := range e.sec {
		out = append(out, ftoa(s.size))
	}
	for _, s := range e.gib {
		out = append(out, ftoa(s.size))
	}
	return append(out, make([]string, len(explainColumns())-len(out))...)
}

// print writes two tables for people, parts that are nothing left out.
func (e *explanation) print(w io.Writer) error {
	if err := printShares(w, e.sec, "step s", 3); err != nil || e.gib == nil {
		return err
	}
	return printShares(w, e.gib, "GiB", 2)
}

func printShares(w io.Writer, shares []portion, unit string, digits int) error {
	total := 0.0
	for _, s := range shares {
		if s.name != "host" {
			total += s.size
		}
	}
	table := [][]string{{"part", unit, "share"}}
	for _, s := range shares {
		switch {
		case s.size < total/1e4:
		case s.name == "host":
			table = append(table, []string{s.what, significant(s.size, digits), ""})
		default:
			table = append(table, []string{s.what, significant(s.size, digits), fmt.Sprintf("%.1f %%", 100*s.size/total)})
		}
	}
	fmt.Fprintln(w)
	return writeTable(w, table)
}
