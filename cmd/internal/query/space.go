package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Space narrows or widens the plans that are proposed, in the words of
// docs/reference/contract.md. The zero value is the default space.
type Space struct {
	ZeRO          []int    `json:"zero,omitempty" maxItems:"16" enum:"0,1,2,3" doc:"ZeRO stages considered; all if absent."`
	Recompute     []string `json:"recompute,omitempty" maxItems:"16" enum:"none,selective,full" doc:"Recompute modes considered; all if absent."`
	Offload       []string `json:"offload,omitempty" maxItems:"16" enum:"none,optimizer,params" doc:"Offload modes considered; all if absent."`
	Schedule      []string `json:"schedule,omitempty" maxItems:"16" enum:"1f1b,gpipe,zb-h1,zb-h2,zb-v,dualpipe-v" doc:"Pipeline schedules considered; 1f1b, interleaved too, if absent."`
	Precisions    []string `json:"precisions,omitempty" maxItems:"16" doc:"Formats considered, without those the device lacks; the one of precision if absent."`
	MaxMicroBatch int      `json:"max_micro_batch,omitempty" minimum:"1" maximum:"16777216" doc:"Largest micro-batch, samples; no bound if absent."`
	TPAcrossNodes bool     `json:"tp_across_nodes,omitempty" doc:"Let tensor parallel groups span nodes that no scale-up link joins."`
}

// Default reports whether s is the default space.
func (s *Space) Default() bool {
	return len(s.ZeRO)+len(s.Recompute)+len(s.Offload)+len(s.Schedule)+len(s.Precisions)+s.MaxMicroBatch == 0 && !s.TPAcrossNodes
}

// Enumerate returns the plans of s for a request with a precision, "" if it names none. Errors are *FieldError.
func (s *Space) Enumerate(precision string) (e planner.Enumerate, err error) {
	e = planner.Enumerate{MaxMicroBatch: s.MaxMicroBatch, TPAcrossNodes: s.TPAcrossNodes}
	if e.ZeRO, err = oneOf("zero", s.ZeRO, 0, 1, 2, 3); err != nil {
		return e, err
	}
	if e.Recompute, err = oneOf("recompute", typed[spec.Recompute](s.Recompute), spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull); err != nil {
		return e, err
	}
	if e.Offload, err = oneOf("offload", typed[spec.Offload](s.Offload), spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams); err != nil {
		return e, err
	}
	if e.Precisions, err = oneOf("precisions", typed[spec.Precision](s.Precisions), spec.Precisions()...); err != nil {
		return e, err
	}
	if len(s.Precisions) > 0 && precision != "" {
		return e, &FieldError{Field: "precisions", Value: strings.Join(s.Precisions, ","), Why: fmt.Sprintf("are those to choose from, but {precision} %s names one format: give one of the two", precision)}
	}
	e.Schedules, err = oneOf("schedule", typed[spec.Schedule](s.Schedule), spec.Schedules()...)
	return e, err
}

// typed are names as a type of them, whatever their case and the space around.
func typed[T ~string](names []string) []T {
	var out []T
	for _, n := range names {
		out = append(out, T(strings.ToLower(strings.TrimSpace(n))))
	}
	return out
}

// oneOf returns values, each once, if all are known.
func oneOf[T comparable](field string, values []T, known ...T) ([]T, error) {
	var out []T
	for _, v := range values {
		if !slices.Contains(known, v) {
			return nil, &FieldError{Field: field, Value: v, Why: "is not one of " + strings.Trim(fmt.Sprint(known), "[]")}
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out, nil
}
