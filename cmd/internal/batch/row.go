package batch

import (
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// Row is the JSON of a predicted row.
type Row struct {
	ID           string                `json:"row_id"`
	StepTimeSec  *float64              `json:"step_time_s"` // null without a prediction
	StepTimeLo   *float64              `json:"step_time_lo_s"`
	StepTimeHi   *float64              `json:"step_time_hi_s"`
	SamplesPerS  *float64              `json:"samples_per_s"`
	TFLOPsPerGPU *float64              `json:"tflops_per_gpu"`
	MemGiB       *float64              `json:"mem_gib"` // with context and communicators
	AllocatedGiB *float64              `json:"mem_allocated_gib"`
	ReservedGiB  *float64              `json:"mem_reserved_gib"`
	Fits         *bool                 `json:"fits"`    // null without a verdict, and if unsure
	Verdict      memory.Verdict        `json:"verdict"` // "" without a prediction of memory
	Family       string                `json:"family"`
	Warnings     []string              `json:"warnings"`
	Explain      *query.ExplanationRow `json:"explain,omitempty"`
	Explanation  *query.Explanation    `json:"-"` // of Explain
}

// newRow describes a, predicted by a family.
func newRow(a *answer, by string) *Row {
	r := &Row{ID: a.row.ID, Warnings: query.OrEmpty(a.warnings())}
	if a.err != nil {
		return r
	}
	c, p := &a.row.Measurement.Config, &a.pred
	sec, lo, hi := p.StepSec(c.Plan.GlobalBatch())
	r.StepTimeSec, r.SamplesPerS, r.Family = &sec, &p.Throughput, by
	if p.Lo > 0 && p.Hi > 0 {
		r.StepTimeLo, r.StepTimeHi = &lo, &hi
	}
	if v := query.TFLOPsPerDevice(c, p.Throughput); c.Model.TrainFLOPs(c.Seq()) > 0 {
		r.TFLOPsPerGPU = &v
	}
	if p.MemoryBytes > 0 {
		mem, allocated, reserved := p.MemoryBytes/memory.GiB, p.AllocatedBytes/memory.GiB, p.ReservedBytes/memory.GiB
		r.MemGiB, r.AllocatedGiB, r.ReservedGiB = &mem, &allocated, &reserved
		if c.Accelerator.MemBytes > 0 {
			r.Verdict = a.verdict
			if fits := a.verdict == memory.Fits; a.verdict != memory.Unsure {
				r.Fits = &fits
			}
		}
	}
	if a.explanation != nil {
		r.Explain, r.Explanation = a.explanation.JSON(), a.explanation
	}
	return r
}

// Header is the columns of the output, in order; with explain, those of explanations too.
func Header(explain bool) []string {
	out := []string{"row_id", "step_time_s", "step_time_lo_s", "step_time_hi_s", "samples_per_s", "tflops_per_gpu", "mem_gib",
		"fits", "verdict", "family", "warnings"}
	if explain {
		out = append(out, query.ExplanationColumns()...)
	}
	return append(out, "mem_allocated_gib", "mem_reserved_gib")
}

// cells is the row under Header, with the cells of its explanation.
func (r *Row) cells(parts []string) []string {
	text := func(v *float64) string {
		if v == nil {
			return ""
		}
		return number.Float(*v)
	}
	fits := ""
	if r.Fits != nil {
		fits = strconv.FormatBool(*r.Fits)
	}
	out := append([]string{r.ID, text(r.StepTimeSec), text(r.StepTimeLo), text(r.StepTimeHi), text(r.SamplesPerS),
		text(r.TFLOPsPerGPU), text(r.MemGiB), fits, string(r.Verdict), r.Family, strings.Join(r.Warnings, "; ")}, parts...)
	return append(out, text(r.AllocatedGiB), text(r.ReservedGiB))
}
