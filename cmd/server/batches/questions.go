package batches

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/server/bodycheck"
	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// Questions are the columns of a record batch of questions, with the names of answer.QuestionFields.
type Questions struct {
	Rows   int
	texts  []textColumn
	wholes []wholeColumn // but seq
	packed *array.Int64  // of wholes; nil without it
	seq    *array.Int64  // nil without it
}

// textColumn is a column of texts, or of a dictionary of them.
type textColumn struct {
	field *answer.QuestionField
	words *array.String
	dict  *array.Dictionary // nil without one
}

type wholeColumn struct {
	at func(*answer.Question) *int
	*array.Int64
}

// Read reads the columns of rec. Unknown columns are errors.
func Read(rec arrow.Record) (*Questions, error) {
	q := &Questions{Rows: int(rec.NumRows())}
	for i := range answer.QuestionFields {
		f := &answer.QuestionFields[i]
		col, err := columnOf(rec, f.Name)
		if err != nil {
			return nil, err
		}
		if col == nil && f.Required {
			return nil, bad(fmt.Sprintf("column %q is missing", f.Name))
		}
		if col == nil {
			continue
		}
		if err := q.add(f, col); err != nil {
			return nil, err
		}
	}
	known := len(q.texts) + len(q.wholes)
	if q.seq != nil {
		known++
	}
	if known < int(rec.NumCols()) {
		return nil, bad(fmt.Sprintf("unknown column: want %s", strings.Join(Names(), ", ")))
	}
	return q, nil
}

// Names returns the names of the columns of questions.
func Names() (out []string) {
	for _, f := range answer.QuestionFields {
		out = append(out, f.Name)
	}
	return out
}

// columnOf returns a column by name, nil without one.
func columnOf(rec arrow.Record, name string) (arrow.Array, error) {
	switch at := rec.Schema().FieldIndices(name); len(at) {
	case 0:
		return nil, nil //nolint:nilnil // no column is no error
	case 1:
		return rec.Column(at[0]), nil
	default:
		return nil, bad(fmt.Sprintf("column %q occurs %d times, want once", name, len(at)))
	}
}

func (q *Questions) add(f *answer.QuestionField, col arrow.Array) error {
	want := "int64"
	switch col := col.(type) {
	case *array.Int64:
		if f.Whole != nil {
			switch f.Name {
			case "seq":
				q.seq = col
				return nil
			case "packed":
				q.packed = col
			}
			q.wholes = append(q.wholes, wholeColumn{f.Whole, col})
			return nil
		}
	case *array.String:
		if f.Text != nil {
			q.texts = append(q.texts, textColumn{f, col, nil})
			return nil
		}
	case *array.Dictionary:
		if words, ok := col.Dictionary().(*array.String); ok && f.Text != nil {
			q.texts = append(q.texts, textColumn{f, words, col})
			return nil
		}
	}
	if f.Text != nil {
		want = "utf8, or a dictionary of it"
	}
	return bad(fmt.Sprintf("column %q is %s, want %s", f.Name, col.DataType(), want))
}

// word returns the index in words of the text of a row, -1 without one.
func (c *textColumn) word(row int) int {
	if c.dict != nil {
		if c.dict.IsNull(row) {
			return -1
		}
		row = c.dict.GetValueIndex(row)
	}
	if c.words.IsNull(row) {
		return -1
	}
	return row
}

// text returns the text of a row, "" without one.
func (c *textColumn) text(row int) string {
	if row = c.word(row); row < 0 {
		return ""
	}
	return c.words.Value(row)
}

// numberOf returns the number of a row, 0 without one.
func numberOf(c *array.Int64, row int) int {
	if c == nil || c.IsNull(row) {
		return 0
	}
	return int(c.Value(row))
}

// Row returns the question of a row. Its texts are those of the record batch.
func (q *Questions) Row(row int) (out answer.Question) {
	for i := range q.texts {
		*q.texts[i].field.Text(&out) = q.texts[i].text(row)
	}
	for i := range q.wholes {
		*q.wholes[i].at(&out) = numberOf(q.wholes[i].Int64, row)
	}
	out.Seq = q.Seq(row)
	return out
}

// Seq returns the length of samples of a row, 0 without one.
func (q *Questions) Seq(row int) int { return numberOf(q.seq, row) }

// AppendPlan appends a key of the plan of a row: rows with equal keys have equal answer.Question.PlanOnly. Rows with
// equal plans have equal keys, unless a dictionary repeats a word. Rows can share the bytes of a text and keys cannot,
// so a word of a dictionary is in the key by its index, and a text over its bound is an error.
func (q *Questions) AppendPlan(b []byte, row int) ([]byte, error) {
	for i := range q.texts {
		c := &q.texts[i]
		if c.dict != nil {
			b = binary.AppendVarint(b, int64(c.word(row)))
			continue
		}
		text := c.text(row)
		if len(text) > c.field.Most {
			return b, badText(c.field, text)
		}
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	for i := range q.wholes {
		b = binary.AppendVarint(b, int64(numberOf(q.wholes[i].Int64, row)))
	}
	if numberOf(q.packed, row) != 0 {
		b = binary.AppendVarint(b, int64(q.Seq(row)))
	}
	return b, nil
}

// CheckTexts returns the problem with the texts of a question.
func CheckTexts(q *answer.Question) error {
	for i := range answer.QuestionFields {
		f := &answer.QuestionFields[i]
		if f.Text == nil {
			continue
		}
		if text := *f.Text(q); len(text) > f.Most || !bodycheck.PlainText(text) {
			return badText(f, text)
		}
	}
	return nil
}

func badText(f *answer.QuestionField, text string) error {
	const want = "want at most %d bytes in Unicode normal form C without control or invisible characters"
	return bad(fmt.Sprintf("%s %q: "+want, f.Name, problem.Echo(text), f.Most))
}

func bad(why string) *problem.Problem { return problem.New(http.StatusUnprocessableEntity, "", why) }
