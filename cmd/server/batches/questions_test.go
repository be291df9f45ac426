package batches

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// record returns a record batch of all columns, whole numbers and texts in turn; "" and 0 are null.
func record(t *testing.T, text arrow.DataType, rows [][]any) arrow.Record {
	t.Helper()
	var fields []arrow.Field
	for _, name := range []string{"model", "accelerator", "plan", "framework"} {
		fields = append(fields, arrow.Field{Name: name, Type: text, Nullable: true})
	}
	for _, name := range []string{"seq", "packed", "devices"} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, row := range rows {
		for i, v := range row {
			if v == "" || v == 0 {
				b.Field(i).AppendNull()
			} else if err := b.Field(i).AppendValueFromString(fmt.Sprint(v)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.NewRecord()
}

func keyOf(t *testing.T, q *Questions, row int) string {
	t.Helper()
	key, err := q.AppendPlan(nil, row)
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// TestPlans: rows have one key if, and only if, they ask about one plan.
func TestPlans(t *testing.T) {
	words := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	for _, text := range []arrow.DataType{arrow.BinaryTypes.String, words} {
		q, err := Read(record(t, text, [][]any{
			{"m", "a", "dp=8", "f", 512, 0, 8}, {"m", "a", "dp=8", "f", 1024, 0, 8}, {"ma", "a", "dp=8", "f", 512, 0, 8},
			{"m", "aa", "dp=8", "f", 512, 0, 8}, {"m", "a", "dp=8", "f", 512, 0, 16}, {"m", "a", "dp=8", "f", 512, 128, 8},
			{"m", "a", "dp=8", "f", 1024, 128, 8}, {"m", "a", "dp=8", "f", 512, 128, 8}, {"m", "a", "dp=8f", "g", 512, 0, 8},
			{"m", "a", "dp=8", "fg", 512, 0, 8}, {"m", "a", "dp=8", "f", -1, 0, 8}, {"m", "a", "dp=8", "f", 512, -1, 8},
			{"m", "a", "dp=8", "", 512, 0, 8}, {"m", "a", "dp=8", "", 1024, 0, 8},
		}))
		if err != nil {
			t.Fatal(err)
		}
		pairs := 0
		for i := range q.Rows {
			for j := range i {
				key, other := keyOf(t, q, i), keyOf(t, q, j)
				one, two := q.Row(i), q.Row(j)
				if same := one.PlanOnly() == two.PlanOnly(); same != (key == other) {
					t.Errorf("%v: rows %d and %d, %+v and %+v: keys %q and %q", text, i, j, one, two, key, other)
				} else if same {
					pairs++
				}
			}
		}
		if pairs != 5 {
			t.Errorf("%v: %d pairs of rows ask about one plan, want 5", text, pairs)
		}
	}
}

// TestReadRefuses: unknown, repeated and missing columns, and columns of other types, are errors that name them.
func TestReadRefuses(t *testing.T) {
	text, whole := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	for _, c := range []struct {
		names string
		types []arrow.DataType
		says  string
	}{
		{"model,accelerator,plan,seq", []arrow.DataType{text, text, text, whole}, ""},
		{"model,accelerator,plan,seq,turnip", []arrow.DataType{text, text, text, whole, whole}, "unknown column"},
		{"model,accelerator,plan,seq,seq", []arrow.DataType{text, text, text, whole, whole}, `column "seq" occurs 2 times`},
		{"model,plan,seq", []arrow.DataType{text, text, whole}, `column "accelerator" is missing`},
		{"model,accelerator,plan,seq", []arrow.DataType{text, text, text, text}, `column "seq" is utf8, want int64`},
		{"model,accelerator,plan", []arrow.DataType{text, whole, text}, `column "accelerator" is int64, want utf8`},
	} {
		var fields []arrow.Field
		for i, name := range strings.Split(c.names, ",") {
			fields = append(fields, arrow.Field{Name: name, Type: c.types[i], Nullable: true})
		}
		b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
		_, err := Read(b.NewRecord())
		if got := fmt.Sprint(err); err == nil && c.says != "" || c.says != "" && !strings.Contains(got, c.says) || c.says == "" && err != nil {
			t.Errorf("%s: %v, want %q", c.names, err, c.says)
		}
	}
}
