package batches

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	memorymodel "github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Schema is the schema of answers, a row per question in its order. Names and units are those of a plan of POST
// /v1/predict. A question without an answer has problem and status alone.
var Schema = arrow.NewSchema([]arrow.Field{
	{Name: "step_time_s", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "step_time_lo_s", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "step_time_hi_s", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "samples_per_s", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "mem_gib", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "tflops_per_gpu", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "fits", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "verdict", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "by", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "why", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "warnings", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.String), Nullable: true},
	{Name: "status", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "problem", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// Predictions builds a record batch of Schema. Figures are appended at once, texts row by row.
type Predictions struct {
	*array.RecordBuilder
	valid, failed []bool // by row
	numbers       [6][]float64
	fits          []bool
	texts         [3]*array.StringBuilder // verdict, by, why
	warnings      *array.ListBuilder
	warning       *array.StringBuilder
	status        []int32
	problem       *array.StringBuilder
}

// NewPredictions returns a builder of so many rows. The caller releases it.
func NewPredictions(rows int) *Predictions {
	b := &Predictions{RecordBuilder: array.NewRecordBuilder(memory.NewGoAllocator(), Schema)}
	b.Reserve(rows)
	flags := make([]bool, 3*rows)
	b.valid, b.failed, b.fits = flags[:0:rows], flags[rows:rows:2*rows], flags[2*rows:2*rows]
	for i := range b.numbers {
		b.numbers[i] = make([]float64, 0, rows)
	}
	for i := range b.texts {
		b.texts[i] = b.Field(7 + i).(*array.StringBuilder)
	}
	b.warnings = b.Field(10).(*array.ListBuilder)
	b.warning = b.warnings.ValueBuilder().(*array.StringBuilder)
	b.status = make([]int32, 0, rows)
	b.problem = b.Field(12).(*array.StringBuilder)
	return b
}

// row appends the figures of a row.
func (b *Predictions) row(numbers [6]float64, fits bool, status int) {
	for i, v := range numbers {
		b.numbers[i] = append(b.numbers[i], v)
	}
	b.fits, b.status = append(b.fits, fits), append(b.status, int32(status))
	b.valid, b.failed = append(b.valid, status == 0), append(b.failed, status != 0)
}

// Add appends a prediction.
func (b *Predictions) Add(ch *planner.Choice, cost *spec.TrainCost) {
	p := &ch.Prediction
	var sec, lo, hi float64
	if p.Throughput > 0 { // else it does not fit and is not covered
		sec, lo, hi = p.StepSec(ch.Config.Plan.GlobalBatch())
	}
	b.row([...]float64{sec, lo, hi, p.Throughput, p.MemoryBytes / memorymodel.GiB, query.TFLOPsAtCost(cost, &ch.Config, p.Throughput)}, ch.Fits, 0)
	b.texts[0].Append(string(ch.Verdict))
	b.texts[1].Append(p.By)
	if ch.Why == "" {
		b.texts[2].AppendNull()
	} else {
		b.texts[2].Append(ch.Why)
	}
	b.warnings.Append(true)
	for _, w := range p.Warnings {
		b.warning.Append(w.Error())
	}
	b.problem.AppendNull()
}

// Fail appends a problem.
func (b *Predictions) Fail(p *problem.Problem) {
	b.row([6]float64{}, false, p.Status)
	for i := range b.texts {
		b.texts[i].AppendNull()
	}
	b.warnings.AppendNull()
	b.problem.Append(p.Detail)
}

// Record returns the record batch.
func (b *Predictions) Record() arrow.Record {
	for i, v := range b.numbers {
		b.Field(i).(*array.Float64Builder).AppendValues(v, b.valid)
	}
	b.Field(6).(*array.BooleanBuilder).AppendValues(b.fits, b.valid)
	b.Field(11).(*array.Int32Builder).AppendValues(b.status, b.failed)
	return b.NewRecord()
}
