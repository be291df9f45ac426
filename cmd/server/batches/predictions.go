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
	{Name: "mem_allocated_gib", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "mem_reserved_gib", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

// numbers is the number of columns of numbers. The last two of them are the last columns.
const numbers = 8

// Predictions builds a record batch of Schema.
type Predictions struct {
	rows, failures                     int
	valid, fits, explained, failed     []byte // bits by row
	numbers                            [numbers][]float64
	verdict, by, why, warning, problem texts
	warnings                           []int32 // ends of the rows in warning
	status                             []int32
}

// texts are those of a column, one after the other.
type texts struct {
	ends  []int32 // from 0 on
	bytes []byte
}

// newTexts has room for so many texts, and for each of them for so many bytes. More bytes make more room.
func newTexts(n, each int) texts {
	return texts{make([]int32, 1, n+1), make([]byte, 0, n*each)}
}

func (t *texts) add(text string) {
	t.bytes = append(t.bytes, text...)
	t.ends = append(t.ends, int32(len(t.bytes))) //nolint:gosec // far below 2 GiB
}

// data returns the column. bits are those of the texts that are not null.
func (t *texts) data(bits *memory.Buffer, nulls int) arrow.ArrayData {
	return array.NewData(arrow.BinaryTypes.String, len(t.ends)-1, []*memory.Buffer{bits, wholes(t.ends), memory.NewBufferBytes(t.bytes)}, nil, nulls, 0)
}

func wholes(of []int32) *memory.Buffer {
	return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(of))
}

// Bytes of the texts of a row that there is room for.
const (
	bytesPerText = 12
	bytesPerWhy  = 64
)

// NewPredictions returns a builder of so many rows.
func NewPredictions(rows int) *Predictions {
	b := &Predictions{verdict: newTexts(rows, bytesPerText), by: newTexts(rows, bytesPerText), why: newTexts(rows, bytesPerWhy), problem: newTexts(rows, 0),
		warning: newTexts(0, 0), warnings: make([]int32, 1, rows+1), status: make([]int32, 0, rows)}
	for _, bits := range []*[]byte{&b.valid, &b.fits, &b.explained, &b.failed} {
		*bits = make([]byte, bitutil.BytesForBits(int64(rows)))
	}
	for i := range b.numbers {
		b.numbers[i] = make([]float64, 0, rows)
	}
	return b
}

// Add appends a prediction.
func (b *Predictions) Add(ch *planner.Choice, cost *spec.TrainCost) {
	p := &ch.Prediction
	var sec, lo, hi float64
	if p.Throughput > 0 { // else it does not fit and is not covered
		sec, lo, hi = p.StepSec(ch.Config.Plan.GlobalBatch())
	}
	bitutil.SetBit(b.valid, b.rows)
	if ch.Fits {
		bitutil.SetBit(b.fits, b.rows)
	}
	if ch.Why != "" {
		bitutil.SetBit(b.explained, b.rows)
	}
	for _, w := range p.Warnings {
		b.warning.add(w.Error())
	}
	b.row([...]float64{sec, lo, hi, p.Throughput, p.MemoryBytes / memorymodel.GiB, query.TFLOPsAtCost(cost, &ch.Config, p.Throughput),
		p.AllocatedBytes / memorymodel.GiB, p.ReservedBytes / memorymodel.GiB},
		string(ch.Verdict), p.By, ch.Why, 0, "")
}

// Fail appends a problem.
func (b *Predictions) Fail(p *problem.Problem) {
	bitutil.SetBit(b.failed, b.rows)
	b.failures++
	b.row([numbers]float64{}, "", "", "", p.Status, p.Detail)
}

func (b *Predictions) row(of [numbers]float64, verdict, by, why string, status int, detail string) {
	for i, v := range of {
		b.numbers[i] = append(b.numbers[i], v)
	}
	b.verdict.add(verdict)
	b.by.add(by)
	b.why.add(why)
	b.warnings = append(b.warnings, int32(len(b.warning.ends)-1)) //nolint:gosec // far below 2 GiB
	b.status = append(b.status, int32(status))                    //nolint:gosec // of HTTP
	b.problem.add(detail)
	b.rows++
}

// Record returns the record batch. The builder is then used up.
func (b *Predictions) Record() arrow.Record {
	valid, failed, explained := memory.NewBufferBytes(b.valid), memory.NewBufferBytes(b.failed), memory.NewBufferBytes(b.explained)
	var columns []arrow.Array
	add := func(data arrow.ArrayData) { columns = append(columns, array.MakeFromData(data)) }
	plain := func(of arrow.DataType, bits, values *memory.Buffer, nulls int, children ...arrow.ArrayData) {
		add(array.NewData(of, b.rows, []*memory.Buffer{bits, values}, children, nulls, 0))
	}
	number := func(of []float64) {
		plain(arrow.PrimitiveTypes.Float64, valid, memory.NewBufferBytes(arrow.Float64Traits.CastToBytes(of)), b.failures)
	}
	for _, of := range b.numbers[:numbers-2] {
		number(of)
	}
	plain(arrow.FixedWidthTypes.Boolean, valid, memory.NewBufferBytes(b.fits), b.failures)
	add(b.verdict.data(valid, b.failures))
	add(b.by.data(valid, b.failures))
	add(b.why.data(explained, b.rows-bitutil.CountSetBits(b.explained, 0, b.rows)))
	plain(Schema.Field(10).Type, valid, wholes(b.warnings), b.failures, b.warning.data(nil, 0))
	plain(arrow.PrimitiveTypes.Int32, failed, wholes(b.status), b.rows-b.failures)
	add(b.problem.data(failed, b.rows-b.failures))
	for _, of := range b.numbers[numbers-2:] {
		number(of)
	}
	return array.NewRecord(Schema, columns, int64(b.rows))
}
