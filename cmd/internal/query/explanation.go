package query

import (
	"fmt"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Explainer is implemented by performance models that split the step time by cause.
type Explainer interface {
	// Explain returns the predicted step time of c by cause.
	Explain(c spec.Config) (analytic.Parts, error)
	// StackWeights returns the probability of each of stack.Of(c), and whether rows of c's site are measured.
	StackWeights(c spec.Config) (weight [stack.MaxChoices]float64, measured bool, err error)
}

// ExplainerOf returns p as an Explainer, or a *FieldError if its family is none.
func ExplainerOf(p perfmodel.Predictor, by string) (Explainer, error) {
	e, ok := p.(Explainer)
	if !ok {
		return nil, &FieldError{Field: "explain", Value: true, Why: fmt.Sprintf("is not possible: a model of family %s cannot say where the time goes; {family} analytic and hybrid can", by)}
	}
	return e, nil
}

// Share is one part of a step or of memory.
type Share struct {
	Name string // of the JSON field, and of the CSV column but for its unit
	What string
	Size float64 // seconds or GiB
}

// Explanation is where a predicted step's time and memory go, and which training stacks that assumes.
type Explanation struct {
	Sec    []Share
	GiB    []Share // nil where memory is not known
	Peak   *MemPeak
	Stacks []AssumedStack

	Measured bool // the prediction is from measured rows of the accelerator and training stack
}

// MemPeak is where and when the memory of explain.mem_gib is in use.
type MemPeak struct {
	Stage  int          `json:"stage" doc:"Pipeline stage of the device, from 0."`
	Stages int          `json:"stages" doc:"Number of pipeline stages."`
	At     memory.Point `json:"point,omitempty" doc:"Point of the step at which the memory peaks."`
}

// ExplanationRow is the JSON of an Explanation.
type ExplanationRow struct {
	StepS   map[string]float64 `json:"step_s"`
	MemGiB  map[string]float64 `json:"mem_gib,omitempty"`
	MemPeak *MemPeak           `json:"mem_peak,omitempty"`
	Stacks  []AssumedStack     `json:"stacks" doc:"Training stacks that the prediction assumes, the most probable first; one if the request states it."`
}

// Explain splits the predicted step time of c, and its memory by m unless m is nil.
func Explain(e Explainer, m *memory.Estimator, c spec.Config) (Explanation, error) {
	p, err := e.Explain(c)
	if err != nil {
		return Explanation{}, err
	}
	out := Explanation{Sec: TimeShares(p)}
	if out.Stacks, out.Measured, err = assumedStacks(e, c, p.Total()); err != nil {
		return Explanation{}, err
	}
	if m != nil {
		b := m.Plan(c.Plan)
		out.GiB, out.Peak = MemoryShares(b), &MemPeak{Stage: b.Stage, Stages: max(c.Plan.PP, 1), At: b.At}
	}
	return out, nil
}

// TimeShares names the parts of a step, in seconds.
func TimeShares(p analytic.Parts) []Share {
	return []Share{
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

// MemoryShares names the parts of a device's memory, in GiB.
func MemoryShares(b memory.Breakdown) []Share {
	return []Share{
		{"parameters", "weights", b.Parameters / memory.GiB},
		{"gradients", "gradients", b.Gradients / memory.GiB},
		{"optimizer", "optimizer states", b.Optimizer / memory.GiB},
		{"gathered", "gathered shards in hand", b.Gathered / memory.GiB},
		{"activations", "activations kept for the backward pass", b.Activations / memory.GiB},
		{"working", "the layer or logits being worked on", b.Working / memory.GiB},
		{"buffers", "communication buffers", b.Buffers / memory.GiB},
		{"overhead", "context, communicators, fragmentation", b.Overhead / memory.GiB},
		{"host", "host memory, per device and not on it", b.HostBytes / memory.GiB},
	}
}

// JSON is the contract's form.
func (e *Explanation) JSON() *ExplanationRow {
	out := &ExplanationRow{StepS: byName(e.Sec), MemPeak: e.Peak, Stacks: e.Stacks}
	if e.GiB != nil {
		out.MemGiB = byName(e.GiB)
	}
	return out
}

func byName(shares []Share) map[string]float64 {
	out := make(map[string]float64, len(shares))
	for _, s := range shares {
		out[s.Name] = s.Size
	}
	return out
}

// ExplanationColumns are the columns that an explanation adds to a CSV.
func ExplanationColumns() []string {
	var out []string
	for _, s := range TimeShares(analytic.Parts{}) {
		out = append(out, s.Name+"_s")
	}
	for _, s := range MemoryShares(memory.Breakdown{}) {
		out = append(out, s.Name+"_gib")
	}
	return out
}

// Cells are the cells under ExplanationColumns; unknown ones are blank.
func (e *Explanation) Cells() []string {
	var out []string
	for _, s := range e.Sec {
		out = append(out, strconv.FormatFloat(s.Size, 'g', -1, 64))
	}
	for _, s := range e.GiB {
		out = append(out, strconv.FormatFloat(s.Size, 'g', -1, 64))
	}
	return append(out, make([]string, len(ExplanationColumns())-len(out))...)
}
