package server

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
)

// textQuestion and wholeQuestion are the columns of questions, with the names of the fields of POST /v1/predict. The
// first three are required.
var (
	textQuestion = []struct {
		name string
		at   func(*answer.PredictRequest) *string
		most int // bytes
	}{
		{"model", func(q *answer.PredictRequest) *string { return &q.Model }, 256},
		{"accelerator", func(q *answer.PredictRequest) *string { return &q.Accelerator }, 256},
		{"plan", func(q *answer.PredictRequest) *string { return &q.Plan }, 1024},
		{"shape", func(q *answer.PredictRequest) *string { return &q.FixedPlan.Shape }, 4096},
		{"node", func(q *answer.PredictRequest) *string { return &q.Node }, 256},
		{"framework", func(q *answer.PredictRequest) *string { return &q.Framework }, 256},
		{"adapter", func(q *answer.PredictRequest) *string { return &q.Adapter }, 64},
		{"date", func(q *answer.PredictRequest) *string { return &q.Date }, 10},
		{"precision", func(q *answer.PredictRequest) *string { return &q.Precision }, 32},
		{"family", func(q *answer.PredictRequest) *string { return &q.Family }, 64},
	}
	wholeQuestion = []struct {
		name string
		at   func(*answer.PredictRequest) *int
	}{
		{"global_batch", func(q *answer.PredictRequest) *int { return &q.GlobalBatch }},
		{"per_node", func(q *answer.PredictRequest) *int { return &q.PerNode }},
		{"packed", func(q *answer.PredictRequest) *int { return &q.Packed }},
		{"devices", func(q *answer.PredictRequest) *int { return &q.FixedPlan.Devices }},
	}
)

const (
	requiredQuestions = 3
	seqQuestion       = "seq" // the column that differs between prepared questions
	numTexts          = 10
	numWholes         = 4
	packedQuestion    = 2 // in wholeQuestion
)

// questionKey identifies what is prepared: texts by their number, and whole numbers.
type questionKey struct {
	texts  [numTexts]int32
	wholes [numWholes]int64
	seq    int64 // with packed
}

// questions are the columns of a record batch.
type questions struct {
	rows   int
	texts  [numTexts]textColumn
	wholes [numWholes]*array.Int64
	seq    *array.Int64
}

// textColumn numbers the distinct texts of a column; 0 is null or absent.
type textColumn struct {
	plain   *array.String
	dict    *array.Dictionary
	numbers map[string]int32
	known   []string // by number - 1
	byIndex []int32  // of the dictionary: number, -1 = not yet
}

// questionsOf reads the columns of rec. Unknown columns are errors.
func questionsOf(rec arrow.Record) (*questions, error) {
	q := &questions{rows: int(rec.NumRows())}
	used := 0
	for i, c := range textQuestion {
		col, err := columnOf(rec, c.name)
		if err != nil {
			return nil, err
		}
		if col == nil && i < requiredQuestions {
			return nil, badFlight(fmt.Sprintf("column %q is missing", c.name))
		}
		if col == nil {
			continue
		}
		used++
		if q.texts[i], err = newTextColumn(c.name, col); err != nil {
			return nil, err
		}
	}
	for i, c := range wholeQuestion {
		col, err := wholeColumn(rec, c.name, &used)
		if err != nil {
			return nil, err
		}
		q.wholes[i] = col
	}
	var err error
	if q.seq, err = wholeColumn(rec, seqQuestion, &used); err != nil {
		return nil, err
	}
	if used < int(rec.NumCols()) {
		return nil, badFlight(fmt.Sprintf("unknown column: want %s", strings.Join(questionNames(), ", ")))
	}
	return q, nil
}

func questionNames() (out []string) {
	for _, c := range textQuestion {
		out = append(out, c.name)
	}
	for _, c := range wholeQuestion {
		out = append(out, c.name)
	}
	return append(out, seqQuestion)
}

// columnOf returns a column by name, nil without one.
func columnOf(rec arrow.Record, name string) (arrow.Array, error) {
	switch at := rec.Schema().FieldIndices(name); len(at) {
	case 0:
		return nil, nil //nolint:nilnil // no column is no error
	case 1:
		return rec.Column(at[0]), nil
	default:
		return nil, badFlight(fmt.Sprintf("column %q occurs %d times, want once", name, len(at)))
	}
}

func wholeColumn(rec arrow.Record, name string, used *int) (*array.Int64, error) {
	col, err := columnOf(rec, name)
	if col == nil {
		return nil, err
	}
	*used++
	whole, ok := col.(*array.Int64)
	if !ok {
		return nil, badFlight(fmt.Sprintf("column %q is %s, want int64", name, col.DataType()))
	}
	return whole, nil
}

func newTextColumn(name string, col arrow.Array) (c textColumn, err error) {
	c.numbers = map[string]int32{}
	switch col := col.(type) {
	case *array.String:
		c.plain = col
		return c, nil
	case *array.Dictionary:
		if words, ok := col.Dictionary().(*array.String); ok {
			c.dict, c.plain, c.byIndex = col, words, make([]int32, words.Len())
			for i := range c.byIndex {
				c.byIndex[i] = -1
			}
			return c, nil
		}
	}
	return c, badFlight(fmt.Sprintf("column %q is %s, want utf8, or a dictionary of it", name, col.DataType()))
}

// number returns the number of the text of a row.
func (c *textColumn) number(row int) int32 {
	switch {
	case c.plain == nil:
		return 0
	case c.dict == nil:
		return c.intern(row)
	case c.dict.IsNull(row):
		return 0
	}
	i := c.dict.GetValueIndex(row)
	if c.byIndex[i] < 0 {
		c.byIndex[i] = c.intern(i)
	}
	return c.byIndex[i]
}

func (c *textColumn) intern(i int) int32 {
	if c.plain.IsNull(i) {
		return 0
	}
	text := c.plain.Value(i)
	n, ok := c.numbers[text]
	if !ok {
		text = strings.Clone(text) // the record is freed
		c.known = append(c.known, text)
		n = int32(len(c.known))
		c.numbers[text] = n
	}
	return n
}

// text returns the text of a number.
func (c *textColumn) text(n int32) string {
	if n == 0 {
		return ""
	}
	return c.known[n-1]
}

// key returns the key of a row, and its seq.
func (q *questions) key(row int) (k questionKey, seq int64) {
	for i := range q.texts {
		k.texts[i] = q.texts[i].number(row)
	}
	for i, col := range q.wholes {
		k.wholes[i] = wholeOf(col, row)
	}
	seq = wholeOf(q.seq, row)
	if k.wholes[packedQuestion] != 0 {
		k.seq = seq
	}
	return k, seq
}

func wholeOf(col *array.Int64, row int) int64 {
	if col == nil || col.IsNull(row) {
		return 0
	}
	return col.Value(row)
}

// request returns the request of a key, or the problem with its texts.
func (q *questions) request(k questionKey) (out answer.PredictRequest, err error) {
	for i, c := range textQuestion {
		text := q.texts[i].text(k.texts[i])
		if len(text) > c.most || !plainText(text) {
			return out, badFlight(fmt.Sprintf("%s %q: want at most %d bytes in Unicode normal form C without control or invisible characters", c.name, cut(text, maxEcho), c.most))
		}
		*c.at(&out) = text
	}
	for i, c := range wholeQuestion {
		*c.at(&out) = int(k.wholes[i])
	}
	out.Seq = int(k.seq)
	return out, nil
}
