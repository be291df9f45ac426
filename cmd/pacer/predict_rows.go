package main

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// predictedRow is one row of the output, in JSON.
type predictedRow struct {
	ID           string                        `json:"row_id"`
	StepTimeSec  *float64                      `json:"step_time_s"` // null where nothing is predicted
	StepTimeLo   *float64                      `json:"step_time_lo_s"`
	StepTimeHi   *float64                      `json:"step_time_hi_s"`
	SamplesPerS  *float64                      `json:"samples_per_s"`
	TFLOPsPerGPU *float64                      `json:"tflops_per_gpu"`
	MemGiB       *float64                      `json:"mem_gib"`
	Fits         *bool                         `json:"fits"`
	Family       string                        `json:"family"`
	Warnings     []string                      `json:"warnings"`
	Explain      map[string]map[string]float64 `json:"explain,omitempty"`
}

// rowColumns are the columns of the output, in order.
var rowColumns = []string{"row_id", "step_time_s", "step_time_lo_s", "step_time_hi_s", "samples_per_s", "tflops_per_gpu", "mem_gib",
	"fits", "family", "warnings"}

// newPredictedRow writes out a, by a family.
func newPredictedRow(a *answer, by string) predictedRow {
	r := predictedRow{ID: a.row.ID, Warnings: a.warnings()}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	if a.why != nil {
		return r
	}
	c, p := &a.row.Measurement.Config, &a.pred
	sec, lo, hi := p.StepSec(c.Plan.GlobalBatch())
	r.StepTimeSec, r.SamplesPerS, r.Family = &sec, &p.Throughput, by
	if p.Lo > 0 && p.Hi > 0 {
		r.StepTimeLo, r.StepTimeHi = &lo, &hi
	}
	if flops := c.Model.TrainFLOPs(c.Seq()); flops > 0 {
		v := flops * p.Throughput / float64(c.Plan.Devices()) / 1e12
		r.TFLOPsPerGPU = &v
	}
	if a.mem > 0 {
		v := a.mem / gib
		r.MemGiB = &v
		if c.Accelerator.MemBytes > 0 {
			r.Fits = &a.fits
		}
	}
	if a.by != nil {
		r.Explain = a.by.JSON()
	}
	return r
}

// cells is r as a line of CSV.
func (r *predictedRow) cells() []string {
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return console.Float(*v)
	}
	fits := ""
	if r.Fits != nil {
		fits = strconv.FormatBool(*r.Fits)
	}
	return []string{r.ID, number(r.StepTimeSec), number(r.StepTimeLo), number(r.StepTimeHi), number(r.SamplesPerS),
		number(r.TFLOPsPerGPU), number(r.MemGiB), fits, r.Family, strings.Join(r.Warnings, "; ")}
}

// rowWriter writes predicted rows as CSV as they come, or all at the end where
// another format is asked for.
type rowWriter struct {
	w       io.Writer
	csv     *csv.Writer // nil for other formats
	explain bool
	table   bool
	family  string
	rows    []predictedRow
	parts   [][]string // cells of explainColumns, for a table of rows explained
}

// newRowWriter writes CSV unless another --output is asked for.
func newRowWriter(c *cli.Context, w io.Writer, family string) *rowWriter {
	rw := &rowWriter{w: w, family: family}
	switch {
	case !command.OutputGiven(c) || command.Global(c, "output") == "csv":
		rw.csv = csv.NewWriter(w)
	default:
		rw.table = command.Global(c, "output") == "table"
	}
	return rw
}

func (w *rowWriter) begin(explain bool) error {
	w.explain = explain
	header := rowColumns
	if explain {
		header = append(header[:len(header):len(header)], explainColumns()...)
	}
	if w.csv == nil {
		return nil
	}
	return w.csv.Write(header)
}

func (w *rowWriter) put(a *answer) error {
	r := newPredictedRow(a, w.family)
	var parts []string
	if w.explain {
		e := a.by
		if e == nil {
			e = &query.Explanation{}
		}
		parts = explanationCells(e)
	}
	if w.csv != nil {
		return w.csv.Write(append(r.cells(), parts...))
	}
	w.rows = append(w.rows, r)
	if w.table && w.explain {
		w.parts = append(w.parts, parts)
	}
	return nil
}

func (w *rowWriter) end() error {
	switch {
	case w.csv != nil:
		w.csv.Flush()
		return w.csv.Error()
	case w.table:
		return printRows(w.w, w.rows, w.parts, w.family)
	}
	return console.WriteJSON(w.w, map[string]any{"rows": w.rows})
}
