package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

var publishedTables = tables{name: "published", files: publishedFiles, read: publishedRows, first: firstPublishedError}

var publishedImporter = Importer{
	Name:    "published",
	Doc:     "training throughput printed in 12 public documents, V100 to GB300, plans and memory where printed",
	License: "facts only; each row names its source",
	URL:     "see source_path and source_commit of each row",
	Dir:     "a folder of CSV files, or one that has them in published or data/published, with the columns of docs/reference/file-formats.md, \"Rows of your own\"",
	Open:    publishedTables.open,
	Notes:   publishedNotes,
}

// Twelve tables share one header. What a row becomes:
//
//	status        becomes
//	ok            a step time, printed or derived (published_step.go), and memory
//	suspect       the same, doubted
//	oom           out of memory
//	memory_only   memory
//	memory_model  memory, doubted: a paper's analytical value, not measured
//
// A row without step time and memory, given or derived, is a *RowError that
// wraps ErrNotMeasurable. Blank plan columns are 1 or none and listed in
// Env["unrecorded"]. The Config comes only from columns without outcomes
// (published_config.go, published_plan.go) and from the documents of the source
// (published_source.go). Measurement.Doubt is set, with the reason, when
//
//   - the source's table marks the row, or the value is analytical;
//   - DP·TP·PP·CP is not the number of devices, EP does not divide DP·CP·TP, or
//     DP x micro-batch x accumulation is not the global batch;
//   - the micro-batch or the tokens per sample are not recorded and were assumed;
//   - only adapters were trained (LoRA), which is less computation than training
//     the model;
//   - the row implies or prints more than the devices' peak rate, or its step time
//     contradicts its throughput, tflops_per_gpu or mfu (published_plausible.go);
//   - the unit of the throughput is not printed and was inferred;
//   - the run used something that a Plan cannot express (offloaded activations).
//
// Rows that did not run their Config also carry spec.EnvWrongConfig.

func publishedFiles(root fs.FS) ([]string, error) {
	return table.Glob(root, "*.csv", "published/*.csv", "data/published/*.csv")
}

// EnvStepTime is the Env key of rows with a step time that their table does not print.
const EnvStepTime = "step_time"

// publishedColumns are the required columns.
var publishedColumns = []string{"row_id", "model", "accelerator"}

// firstPublishedError returns a *table.HeaderError for a file without measured values. It reads up to
// the first valid row, because only a row has the columns.
func firstPublishedError(root fs.FS, file string) error {
	for rec, err := range table.ReadFile(context.Background(), root, file, publishedColumns...) {
		var row *RowError
		switch {
		case errors.As(err, &row): // the header is valid
			continue
		case err != nil:
			return err
		}
		if _, err := columns(rec, true); err != nil {
			return &table.HeaderError{File: file, Err: err}
		}
		return nil
	}
	return nil
}

// publishedNotes names the unknown columns of each file with measured values.
func publishedNotes(root fs.FS) []string {
	files, _ := publishedFiles(root)
	var out []string
	for _, file := range files {
		for rec, err := range table.ReadFile(context.Background(), root, file, publishedColumns...) {
			if err != nil {
				continue
			}
			if _, err := columns(rec, true); err == nil {
				for _, note := range unknownColumns(rec.Cols, true) {
					out = append(out, file+": "+note)
				}
			}
			break
		}
	}
	return out
}

// publishedRows yields the rows of one file.
func publishedRows(ctx context.Context, root fs.FS, file string) iter.Seq2[spec.Measurement, error] {
	t := newPublishedTable(file)
	if dir, err := fs.Sub(root, path.Dir(file)); err == nil {
		t.beside = dir
	}
	return convertRows(table.ReadFile(ctx, root, file, publishedColumns...), t.measurement)
}

// measurement reads a row with its outcome.
func (t *publishedTable) measurement(rec *table.Record) (spec.Measurement, error) {
	r := t.row(rec)
	r.config()
	r.measure()
	if rec.Err() != nil {
		return spec.Measurement{}, rec.Err()
	}
	return r.m, nil
}

// measure adds the outcome to a row with a Config, and all reasons to doubt it.
func (r *publishedRow) measure() {
	r.m.Env = r.env()
	if adapters.MatchString(r.Str("notes")) && !r.source.adapters && r.m.Config.Model.Adapter == (spec.Adapter{}) {
		r.wrong("only adapters were trained")
	}
	if r.Err() == nil {
		r.outcome()
		r.checkPlausible()
	}
	switch {
	case len(r.against) > 0:
		r.m.Env[spec.EnvWrongConfig] = r.against[0]
	case r.unknownAdapter(&r.m.Config.Model):
		r.m.Env[spec.EnvWrongConfig] = "only adapters were trained"
	}
	r.m.Doubt = strings.Join(slices.Concat(r.against, r.assumed, r.doubts), "; ")
}

// adapters detects fine-tuning that freezes the weights of the model.
var adapters = regexp.MustCompile(`(?i)\b(q?lora|dora|adapter)`)

// env returns facts without a place in a Config, as written.
func (r *publishedRow) env() map[string]string {
	env := map[string]string{}
	for _, col := range []string{"model", "accelerator", "precision", "notes", "source_path", "source_commit", "source_date"} {
		if s := r.Str(col); s != "" {
			env[col] = s
		}
	}
	if v := r.Str("throughput_value"); v != "" {
		env["throughput"] = v + " " + r.Str("throughput_unit")
	}
	var blank []string
	for _, col := range []string{"dp", "tp", "pp", "cp", "ep", "vpp", "zero_stage", "offload", "recompute",
		"micro_batch", "global_batch", "grad_accum", "precision", "seq_len"} {
		if r.Str(col) == "" && (col != "seq_len" || r.source.seqLens[r.m.Config.Model.Name] == 0) {
			blank = append(blank, col)
		}
	}
	if len(blank) > 0 {
		env["unrecorded"] = strings.Join(blank, ",")
	}
	return env
}

// memKind notes what the peak counts, if the row or its source says so.
func (r *publishedRow) memKind() {
	kind := stack.Memory(r.Str("mem_kind"))
	switch kind {
	case stack.Allocated, stack.Reserved, stack.Device:
	case "":
		kind = r.source.memory
	default:
		r.Fail("mem_kind", fmt.Errorf("is not one of %s, %s, %s", stack.Allocated, stack.Reserved, stack.Device))
	}
	if kind != "" && r.m.PeakBytes > 0 {
		r.m.Env[spec.EnvMemKind] = string(kind)
	}
}

// at notes the time of the measurement.
func (r *publishedRow) at() {
	text := r.Str("measured_at")
	if text == "" {
		return
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			r.m.At = at.UTC()
			return
		}
	}
	r.Fail("measured_at", errors.New("is no time, want one such as 2026-05-03 or 2026-05-03T14:30:00Z"))
}

// outcome sets the outcome by the row's status.
func (r *publishedRow) outcome() {
	r.m.PeakBytes = r.AtLeast0("mem_gib") * (1 << 30)
	for _, column := range []string{"throughput_value", "tflops_per_gpu", "mfu"} {
		r.AtLeast0(column)
	}
	r.memKind()
	r.at()
	switch status := r.Str("status"); status {
	case "oom":
		r.m.Outcome, r.m.Reason = spec.OOM, "did not fit"
		if !r.batchKnown {
			r.wrong("the batch that did not fit is not recorded")
		}
		return
	case "memory_model":
		r.doubt("analytical value, not measured")
	case "suspect":
		r.doubt("marked suspect in its table")
	case "", "ok", "memory_only": // the column is optional
	default:
		r.Fail("status", fmt.Errorf("is not one of ok, oom, suspect, memory_only, memory_model"))
	}
	r.m.Outcome = spec.OK
	sec, why := r.stepSec()
	if sec > 0 && r.Str("step_time_s") == "" {
		r.m.Env[EnvStepTime] = "derived from the throughput"
	}
	switch {
	case sec > 0 && sec <= maxStepSec:
		r.m.StepSec = []float64{sec}
		if sd := r.document().noise; sd > 0 {
			r.m.Env[spec.EnvStepNoise] = strconv.FormatFloat(sd, 'g', -1, 64)
		}
	case sec != 0:
		r.Fail("step_time_s", fmt.Errorf("gives a step of %g s", sec))
	case r.m.PeakBytes == 0:
		column := "throughput_unit"
		if r.Str("throughput_value") == "" {
			column = "step_time_s"
		}
		r.Fail(column, fmt.Errorf("%w: %s", ErrNotMeasurable, why))
	}
}
