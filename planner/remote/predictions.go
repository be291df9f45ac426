package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// Question asks for the prediction of a plan by names, as POST /v1/predict does. A zero field is left to the server; Model,
// Accelerator and Plan are needed.
type Question struct {
	Model       string `json:"model"`       // of the catalog or of stored measurements
	Accelerator string `json:"accelerator"` // likewise
	Plan        string `json:"plan"`        // such as dp=8,tp=2,zero=1
	Shape       string `json:"shape,omitempty"`
	Node        string `json:"node,omitempty"`
	Framework   string `json:"framework,omitempty"`
	Adapter     string `json:"adapter,omitempty"`
	Date        string `json:"date,omitempty"`
	Precision   string `json:"precision,omitempty"`
	Family      string `json:"family,omitempty"`
	GlobalBatch int    `json:"global_batch,omitempty"`
	PerNode     int    `json:"per_node,omitempty"`
	Packed      int    `json:"packed,omitempty"`
	Devices     int    `json:"devices,omitempty"`
	SeqLen      int    `json:"seq,omitempty"`
}

// Answer is a prediction, or why there is none. Times are in seconds, with a 90 % interval.
type Answer struct {
	StepSec    float64  `json:"step_time_s"`
	LoSec      float64  `json:"step_time_lo_s"`
	HiSec      float64  `json:"step_time_hi_s"`
	Throughput float64  `json:"samples_per_s"`
	MemoryGiB  float64  `json:"mem_gib"`
	Allocated  float64  `json:"mem_allocated_gib"` // GiB of tensors; 0 = not known
	Reserved   float64  `json:"mem_reserved_gib"`  // GiB that the framework's allocator holds; 0 = not known
	TFLOPs     float64  `json:"tflops_per_gpu"`
	Fits       bool     `json:"fits"`
	Verdict    string   `json:"verdict"`
	By         string   `json:"by"` // performance model
	Why        string   `json:"why"`
	Warnings   []string `json:"warnings"`

	Err error `json:"-"` // an *Error in place of all else
}

// questionsAtOnce is the most that the server takes at a time.
const questionsAtOnce = 10000

// PredictAll answers any number of questions, in their order. Questions that the server refuses have an Err.
func (c *Client) PredictAll(ctx context.Context, qs []Question) ([]Answer, error) {
	ask := c.predictJSON
	if c.flights != nil {
		ask = c.predictRecords
	}
	out := make([]Answer, 0, len(qs))
	for some := range slices.Chunk(qs, questionsAtOnce) {
		before := len(out)
		var err error
		if out, err = ask(ctx, out, some); err != nil {
			return nil, err
		}
		if n := len(out) - before; n != len(some) {
			return nil, fmt.Errorf("remote: the server answered %d of %d questions", n, len(some))
		}
	}
	return out, nil
}

// predictJSON appends the answers to qs.
func (c *Client) predictJSON(ctx context.Context, out []Answer, qs []Question) ([]Answer, error) {
	var got struct {
		Rows []struct {
			Plan    *Answer  `json:"plan"`
			Problem *Problem `json:"problem"`
		} `json:"rows"`
	}
	in := struct {
		Questions []Question `json:"questions"`
	}{qs}
	if err := c.post(ctx, "/v1/predict/batch", in, &got); err != nil {
		return nil, err
	}
	for _, row := range got.Rows {
		switch {
		case row.Plan != nil:
			out = append(out, *row.Plan)
		case row.Problem != nil:
			out = append(out, Answer{Err: &Error{*row.Problem}})
		}
	}
	return out, nil
}

// predictRecords is predictJSON over Arrow Flight.
func (c *Client) predictRecords(ctx context.Context, out []Answer, qs []Question) ([]Answer, error) {
	rec := questionBatch(qs)
	defer rec.Release()
	before := len(out)
	err := c.fly(ctx, "", func(ctx context.Context, client flight.Client) error {
		ctx, cancel := c.timed(ctx)
		defer cancel()
		stream, err := client.DoExchange(ctx)
		if err != nil {
			return err
		}
		if err := sendBatch(stream, flightPredict, rec); err != nil {
			return err
		}
		out = out[:before]
		return readBatches(stream, func(rec arrow.Record) (err error) {
			out, err = appendAnswers(out, rec)
			return err
		})
	})
	return out, err
}

// Columns of questions. Those without a value in any question are left out.
var (
	questionTexts = []struct {
		name string
		of   func(*Question) *string
	}{
		{"model", func(q *Question) *string { return &q.Model }},
		{"accelerator", func(q *Question) *string { return &q.Accelerator }},
		{"plan", func(q *Question) *string { return &q.Plan }},
		{"shape", func(q *Question) *string { return &q.Shape }},
		{"node", func(q *Question) *string { return &q.Node }},
		{"framework", func(q *Question) *string { return &q.Framework }},
		{"adapter", func(q *Question) *string { return &q.Adapter }},
		{"date", func(q *Question) *string { return &q.Date }},
		{"precision", func(q *Question) *string { return &q.Precision }},
		{"family", func(q *Question) *string { return &q.Family }},
	}
	questionWholes = []struct {
		name string
		of   func(*Question) *int
	}{
		{"global_batch", func(q *Question) *int { return &q.GlobalBatch }},
		{"per_node", func(q *Question) *int { return &q.PerNode }},
		{"packed", func(q *Question) *int { return &q.Packed }},
		{"devices", func(q *Question) *int { return &q.Devices }},
		{"seq", func(q *Question) *int { return &q.SeqLen }},
	}
)

// questionBatch returns qs as a record batch.
func questionBatch(qs []Question) arrow.Record {
	var fields []arrow.Field
	var columns []arrow.Array
	add := func(name string, b array.Builder, needed bool) {
		defer b.Release()
		if needed || b.NullN() < b.Len() {
			fields = append(fields, arrow.Field{Name: name, Type: b.Type(), Nullable: true})
			columns = append(columns, b.NewArray())
		}
	}
	for k, f := range questionTexts {
		needed := k < 3
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.Reserve(len(qs))
		for i := range qs {
			if text := *f.of(&qs[i]); text != "" || needed {
				b.Append(text)
			} else {
				b.AppendNull()
			}
		}
		add(f.name, b, needed)
	}
	for _, f := range questionWholes {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.Reserve(len(qs))
		for i := range qs {
			if n := *f.of(&qs[i]); n != 0 {
				b.Append(int64(n))
			} else {
				b.AppendNull()
			}
		}
		add(f.name, b, false)
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), columns, int64(len(qs)))
}

// predictionColumns are the columns of a record batch of predictions.
type predictionColumns struct {
	numbers                   [len(numberColumns)]*array.Float64 // in the order of numberColumns
	fits                      *array.Boolean
	verdict, by, why, problem *array.String
	warnings                  *array.List
	words                     *array.String // of warnings
	status                    *array.Int32
}

// columnOf sets to to a column by name.
func columnOf[A arrow.Array](rec arrow.Record, name string, to *A) error {
	at := rec.Schema().FieldIndices(name)
	if len(at) != 1 {
		return fmt.Errorf("the predictions have %d columns %q, want 1", len(at), name)
	}
	col, ok := rec.Column(at[0]).(A)
	if !ok {
		return fmt.Errorf("the column %q of the predictions is %s", name, rec.Column(at[0]).DataType())
	}
	*to = col
	return nil
}

// numberColumns are the columns of numbers and the fields of Answer that they set.
var numberColumns = [...]struct {
	name string
	of   func(*Answer) *float64
}{
	{"step_time_s", func(a *Answer) *float64 { return &a.StepSec }},
	{"step_time_lo_s", func(a *Answer) *float64 { return &a.LoSec }},
	{"step_time_hi_s", func(a *Answer) *float64 { return &a.HiSec }},
	{"samples_per_s", func(a *Answer) *float64 { return &a.Throughput }},
	{"mem_gib", func(a *Answer) *float64 { return &a.MemoryGiB }},
	{"tflops_per_gpu", func(a *Answer) *float64 { return &a.TFLOPs }},
	{"mem_allocated_gib", func(a *Answer) *float64 { return &a.Allocated }},
	{"mem_reserved_gib", func(a *Answer) *float64 { return &a.Reserved }},
}

// olderColumns is the number of numberColumns that servers of all releases send.
const olderColumns = 6

// find finds the columns.
func (c *predictionColumns) find(rec arrow.Record) error {
	err := errors.Join(columnOf(rec, "fits", &c.fits), columnOf(rec, "verdict", &c.verdict), columnOf(rec, "by", &c.by), columnOf(rec, "why", &c.why),
		columnOf(rec, "problem", &c.problem), columnOf(rec, "warnings", &c.warnings), columnOf(rec, "status", &c.status))
	for i, col := range numberColumns {
		if i < olderColumns || rec.Schema().HasField(col.name) {
			err = errors.Join(err, columnOf(rec, col.name, &c.numbers[i]))
		}
	}
	if err != nil {
		return err
	}
	var ok bool
	if c.words, ok = c.warnings.ListValues().(*array.String); !ok {
		return fmt.Errorf("the warnings of the predictions are %s", c.warnings.DataType())
	}
	return nil
}

// appendAnswers appends the rows of a record batch of predictions.
func appendAnswers(out []Answer, rec arrow.Record) ([]Answer, error) {
	var col predictionColumns
	if err := col.find(rec); err != nil {
		return nil, err
	}
	for i := range int(rec.NumRows()) {
		if !col.status.IsNull(i) {
			status := int(col.status.Value(i))
			out = append(out, Answer{Err: &Error{Problem{Status: status, Title: http.StatusText(status), Detail: strings.Clone(col.problem.Value(i))}}})
			continue
		}
		a := Answer{Fits: col.fits.Value(i), Verdict: strings.Clone(col.verdict.Value(i)), By: strings.Clone(col.by.Value(i)), Why: strings.Clone(col.why.Value(i)), Warnings: []string{}}
		for k, numbers := range col.numbers {
			if numbers != nil {
				*numberColumns[k].of(&a) = numbers.Value(i)
			}
		}
		for k, end := col.warnings.ValueOffsets(i); k < end; k++ {
			a.Warnings = append(a.Warnings, strings.Clone(col.words.Value(int(k))))
		}
		out = append(out, a)
	}
	return out, nil
}
