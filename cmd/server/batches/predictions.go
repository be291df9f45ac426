package batches

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
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

// Predictions builds a record batch of Schema.
type Predictions struct {
	valid    []bool // by row
	failures int
	numbers  [6][]float64
	fits     *array.BooleanBuilder
	texts    [3]*array.StringBuilder // verdict, by, why
	warnings *array.ListBuilder
	warning  *array.StringBuilder
	status   *array.Int32Builder
	problem  *array.StringBuilder
}

// bytesPerText is the room for each text of a row; longer ones make more.
const bytesPerText = 12

// NewPredictions returns a builder of so many rows.
func NewPredictions(rows int) *Predictions {
	mem := memory.NewGoAllocator()
	b := &Predictions{valid: make([]bool, 0, rows), fits: array.NewBooleanBuilder(mem), warnings: array.NewListBuilderWithField(mem, Schema.Field(10).Type.(*arrow.ListType).ElemField()),
		status: array.NewInt32Builder(mem), problem: array.NewStringBuilder(mem)}
	for i := range b.numbers {
		b.numbers[i] = make([]float64, 0, rows)
	}
	for i := range b.texts {
		b.texts[i] = array.NewStringBuilder(mem)
		b.texts[i].ReserveData(bytesPerText * rows)
	}
	b.warning = b.warnings.ValueBuilder().(*array.StringBuilder)
	for _, c := range b.built() {
		c.Reserve(rows)
	}
	return b
}

// built returns the columns after the numbers.
func (b *Predictions) built() []array.Builder {
	return []array.Builder{b.fits, b.texts[0], b.texts[1], b.texts[2], b.warnings, b.status, b.problem}
}

// row appends the numbers of a row.
func (b *Predictions) row(numbers [6]float64, valid bool) {
	for i, v := range numbers {
		b.numbers[i] = append(b.numbers[i], v)
	}
	b.valid = append(b.valid, valid)
}

// Add appends a prediction.
func (b *Predictions) Add(ch *planner.Choice, cost *spec.TrainCost) {
	p := &ch.Prediction
	var sec, lo, hi float64
	if p.Throughput > 0 { // else it does not fit and is not covered
		sec, lo, hi = p.StepSec(ch.Config.Plan.GlobalBatch())
	}
	b.row([...]float64{sec, lo, hi, p.Throughput, p.MemoryBytes / memorymodel.GiB, query.TFLOPsAtCost(cost, &ch.Config, p.Throughput)}, true)
	b.fits.Append(ch.Fits)
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
	b.status.AppendNull()
	b.problem.AppendNull()
}

// Fail appends a problem.
func (b *Predictions) Fail(p *problem.Problem) {
	b.row([6]float64{}, false)
	b.failures++
	for _, c := range b.built()[:5] {
		c.AppendNull()
	}
	b.status.Append(int32(p.Status))
	b.problem.Append(p.Detail)
}

// Record returns the record batch. The builder is then used up.
func (b *Predictions) Record() arrow.Record {
	rows := len(b.valid)
	bits := make([]byte, bitutil.BytesForBits(int64(rows)))
	for i, ok := range b.valid {
		if ok {
			bitutil.SetBit(bits, i)
		}
	}
	valid := memory.NewBufferBytes(bits)
	var columns []arrow.Array
	for i := range b.numbers {
		values := memory.NewBufferBytes(arrow.Float64Traits.CastToBytes(b.numbers[i]))
		columns = append(columns, array.NewFloat64Data(array.NewData(arrow.PrimitiveTypes.Float64, rows, []*memory.Buffer{valid, values}, nil, b.failures, 0)))
	}
	for _, c := range b.built() {
		columns = append(columns, c.NewArray())
	}
	return array.NewRecord(Schema, columns, int64(rows))
}
