package rowfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// foreign returns a table like ours, but with the types of other tools. Columns are given as name and array.
func foreign(t *testing.T, cols ...any) arrow.Record {
	t.Helper()
	var fields []arrow.Field
	var arrays []arrow.Array
	for i := 0; i < len(cols); i += 2 {
		a := cols[i+1].(arrow.Array)
		fields = append(fields, arrow.Field{Name: cols[i].(string), Type: a.DataType(), Nullable: true})
		arrays = append(arrays, a)
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
}

func parse(t *testing.T, typ arrow.DataType, json string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(json))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func asParquet(t *testing.T, rec arrow.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &b, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err == nil {
		err = errors.Join(w.Write(rec), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asArrow(t *testing.T, rec arrow.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := ipc.NewFileWriter(&position{Writer: &b}, ipc.WithSchema(rec.Schema()))
	if err == nil {
		err = errors.Join(w.Write(rec), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// foreignColumns returns the columns that a file must have, in types that other tools use.
func foreignColumns(t *testing.T, change map[string]arrow.Array) []any {
	str, i32, f64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float64
	cols := []any{
		"model", parse(t, str, `["tiny","tiny"]`), "accelerator", parse(t, arrow.BinaryTypes.LargeString, `["X","X"]`),
		"source", parse(t, str, `["me","me"]`), "outcome", parse(t, str, `["ok","oom"]`),
		"dp", parse(t, i32, `[2,1]`), "tp", parse(t, f64, `[1,4]`), "pp", parse(t, i32, `[1,1]`),
		"micro_batch", parse(t, i32, `[1,2]`), "accum_steps", parse(t, i32, `[4,4]`),
		"step_sec", parse(t, arrow.ListOf(arrow.PrimitiveTypes.Float32), `[[0.5,0.25],null]`),
		"model_layers", parse(t, f64, `[12,null]`), "model_param_count", parse(t, arrow.PrimitiveTypes.Int64, `[1000000,null]`),
		"at", parse(t, arrow.FixedWidthTypes.Timestamp_ms, `["2024-05-01 12:00:00",null]`),
		"price", parse(t, f64, `[1,2]`), // an unknown column
	}
	for i := 0; i < len(cols); i += 2 {
		if a, ok := change[cols[i].(string)]; ok {
			cols[i+1] = a
		}
	}
	return cols
}

func TestForeignFiles(t *testing.T) {
	want := []spec.Measurement{
		{Config: spec.Config{Model: spec.Model{Name: "tiny", Layers: 12, ParamCount: 1e6}, Accelerator: spec.Accelerator{Name: "X"},
			Plan: spec.Plan{DP: 2, TP: 1, PP: 1, MicroBatch: 1, AccumSteps: 4}}, Outcome: spec.OK, StepSec: []float64{0.5, 0.25},
			Source: "me", At: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)},
		{Config: spec.Config{Model: spec.Model{Name: "tiny"}, Accelerator: spec.Accelerator{Name: "X"},
			Plan: spec.Plan{DP: 1, TP: 4, PP: 1, MicroBatch: 2, AccumSteps: 4}}, Outcome: spec.OOM, Source: "me"},
	}
	rec := foreign(t, foreignColumns(t, nil)...)
	for i, b := range [][]byte{asParquet(t, rec), asArrow(t, rec)} {
		got, errs := rowfiletest.Gather(formats[i].read(b))
		if errs != nil {
			t.Error(formats[i].format, errs)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(formats[i].format, d)
		}
	}
}

// TestForeignFileErrors checks that each error names the file and the column, and the row if only one row is
// wrong.
func TestForeignFileErrors(t *testing.T) {
	str, i32, f64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float64
	cases := []struct {
		column string
		array  arrow.Array
		rows   int // number of valid rows
		want   string
	}{
		{"model", parse(t, i32, `[1,2]`), 0, `column "model" is`},
		{"dp", parse(t, str, `["1","2"]`), 0, `column "dp" is`},
		{"dp", parse(t, i32, `[1,null]`), 1, `row 2: column "dp" is null`},
		{"tp", parse(t, f64, `[1.5,1]`), 1, `row 1: column "tp": 1.5 is not a whole number`},
		{"at", parse(t, i32, `[1,2]`), 0, `column "at" is`},
		{"step_sec", parse(t, f64, `[1,2]`), 0, `column "step_sec" is`},
		{"step_sec", parse(t, arrow.ListOf(str), `[["1"],["2"]]`), 0, `column "step_sec" is`},
		{"step_sec", parse(t, arrow.ListOf(arrow.ListOf(f64)), `[[[1]],[[2]]]`), 0, `column "step_sec" is`},
		{"step_sec", parse(t, arrow.ListOf(f64), `[[-1],[2]]`), 1, `row 1: spec: step time -1 s is not positive`},
		{"outcome", parse(t, str, `["fine","oom"]`), 1, `row 1: spec: outcome "fine"`},
		{"source", parse(t, str, `["me",""]`), 1, `row 2: `},
	}
	for i, c := range cases {
		rec := foreign(t, foreignColumns(t, map[string]arrow.Array{c.column: c.array})...)
		for k, b := range [][]byte{asParquet(t, rec), asArrow(t, rec)} {
			rows, errs := rowfiletest.Gather(formats[k].read(b))
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) || !strings.Contains(errs[0].Error(), "mem") || len(rows) != c.rows {
				t.Errorf("case %d, %s: %d rows and %q, want %d and one error with %q", i, formats[k].format, len(rows), errs, c.rows, c.want)
			}
		}
	}
}

func TestMissingColumns(t *testing.T) {
	all := foreignColumns(t, nil)
	for i := 0; i < len(all); i += 2 {
		name := all[i].(string)
		rec := foreign(t, append(append([]any{}, all[:i]...), all[i+2:]...)...)
		required := false
		for _, c := range columns {
			required = required || c.name == name && c.required
		}
		for k, b := range [][]byte{asParquet(t, rec), asArrow(t, rec)} {
			rows, errs := rowfiletest.Gather(formats[k].read(b))
			switch {
			case !required && (errs != nil || len(rows) != 2):
				t.Errorf("%s without %s: %d rows, %v", formats[k].format, name, len(rows), errs)
			case required && (len(errs) != 1 || !strings.Contains(errs[0].Error(), fmt.Sprintf("column %q is missing", name))):
				t.Errorf("%s without %s: %v", formats[k].format, name, errs)
			}
		}
	}
}

// TestDamagedFiles flips bytes and cuts files: the result is one error that names the file, or the rows that were
// written. It is never other rows, or a panic.
func TestDamagedFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("reads hundreds of damaged files")
	}
	for _, f := range formats {
		t.Run(string(f.format), func(t *testing.T) {
			var b bytes.Buffer
			if _, err := f.write(&b, rowfiletest.Seq(rowfiletest.InventedRows(40))); err != nil {
				t.Fatal(err)
			}
			for cut := 0; cut < b.Len(); cut += 499 {
				if _, errs := rowfiletest.Gather(f.read(b.Bytes()[:cut])); len(errs) != 1 || !strings.Contains(errs[0].Error(), "mem") {
					t.Fatalf("cut to %d bytes: %v", cut, errs)
				}
			}
			want, errs := rowfiletest.Gather(f.read(b.Bytes()))
			if errs != nil {
				t.Fatal(errs)
			}
			footer := bytes.Index(b.Bytes(), []byte(checksumMark)) // near it and at the end, each bit
			accepted := 0
			for at := 0; at < b.Len(); at++ {
				near := at >= footer && at < footer+len(checksumMark) || at >= b.Len()-arrowEnd
				if !near && at%41 != 0 {
					continue
				}
				for bit := range 8 {
					if !near && bit != at%8 {
						continue
					}
					c := bytes.Clone(b.Bytes())
					c[at] ^= 1 << bit
					got, errs := rowfiletest.Gather(f.read(c))
					switch {
					case len(errs) > 1 || len(errs) == 1 && (len(got) > 0 || !strings.Contains(errs[0].Error(), "mem")):
						t.Fatalf("bit %d of byte %d: %d rows, %v", bit, at, len(got), errs)
					case len(errs) == 1:
					default:
						if accepted++; !cmp.Equal(want, got) {
							t.Fatalf("bit %d of byte %d: other rows", bit, at)
						}
					}
				}
			}
			if accepted != 8*len(checksumMark) { // without its mark a file has no checksum
				t.Errorf("%d damaged files were read, want those with a damaged mark", accepted)
			}
		})
	}
}

// TestFilesWithoutChecksum: files that other tools wrote, or rewrote, are read; they find no checksum.
func TestFilesWithoutChecksum(t *testing.T) {
	var b bytes.Buffer
	if _, err := WriteArrow(&b, rowfiletest.Seq(rowfiletest.InventedRows(9))); err != nil {
		t.Fatal(err)
	}
	want, _ := rowfiletest.Gather(formats[1].read(b.Bytes()))
	f, err := ipc.NewFileReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := f.RecordAt(0)
	if err != nil {
		t.Fatal(err)
	}
	for i, rewritten := range [][]byte{asParquet(t, rec), asArrow(t, rec)} {
		if bytes.Contains(rewritten, []byte(checksumMark)) {
			t.Fatal("the checksum was copied")
		}
		got, errs := rowfiletest.Gather(formats[i].read(rewritten))
		if d := cmp.Diff(want, got); d != "" || errs != nil || len(got) != 9 {
			t.Errorf("%s: %v %s", formats[i].format, errs, d)
		}
	}
}

// TestReadPanics checks that a panic of the loop body is not reported as damage.
func TestReadPanics(t *testing.T) {
	var b bytes.Buffer
	if _, err := WriteParquet(&b, rowfiletest.Seq(rowfiletest.InventedRows(2))); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v", r)
		}
	}()
	for range ReadParquetFrom("mem", bytes.NewReader(b.Bytes()), int64(b.Len())) {
		panic("mine")
	}
}

func FuzzReadParquet(f *testing.F) { fuzzRead(f, 0) }
func FuzzReadArrow(f *testing.F)   { fuzzRead(f, 1) }

// fuzzRead checks that any bytes give rows that Check accepts, or errors.
func fuzzRead(f *testing.F, format int) {
	for _, n := range []int{0, 1, 9} {
		var b bytes.Buffer
		if _, err := formats[format].write(&b, rowfiletest.Seq(rowfiletest.InventedRows(n))); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()/2])
	}
	f.Add([]byte("PAR1PAR1"))
	f.Add([]byte("ARROW1\x00\x00ARROW1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for m, err := range formats[format].read(b) {
			if err != nil && !strings.HasPrefix(err.Error(), "rowfile: mem: ") {
				t.Fatalf("error %q names no file", err)
			}
			if err == nil && Check(&m) != nil {
				t.Fatalf("got %+v: %v", m, Check(&m))
			}
		}
	})
}

// TestFormatTable compares the table in FORMAT.md with the columns.
func TestFormatTable(t *testing.T) {
	b, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "| column | type | unit | required | |\n|---|---|---|---|---|\n")
	var want strings.Builder
	for i, f := range Schema().Fields() {
		c := columns[i]
		typ := map[kind]string{textKind: "string", wholeKind: "int64", numberKind: "float64", flagKind: "bool",
			timeKind: "timestamp[ns, UTC]", listKind: `list\<float64\>`}[c.kind]
		required := ""
		if !f.Nullable {
			required = "yes"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s | %s |\n", f.Name, typ, c.unit, required, c.doc)
	}
	if d := cmp.Diff(want.String(), table); d != "" {
		t.Error(d)
	}
}

// shortDisk accepts a limited number of bytes.
type shortDisk struct{ left int }

var errFull = errors.New("disk full")

func (d *shortDisk) Write(b []byte) (int, error) {
	if len(b) > d.left {
		return 0, errFull
	}
	d.left -= len(b)
	return len(b), nil
}

// TestFullDisk: if the disk is full at any point, its error is returned.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("writes files at every size of a full disk")
	}
	m := spec.Measurement{Config: spec.Config{Model: spec.Model{Name: "m"}, Accelerator: spec.Accelerator{Name: "a"}}, StepSec: []float64{1}, Source: "here", Outcome: spec.OK}
	var whole bytes.Buffer
	if _, err := WriteParquet(&whole, rowfiletest.Seq([]spec.Measurement{m})); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{0, 3, 4, 100, whole.Len() / 2, whole.Len() - 1} {
		if _, err := WriteParquet(&shortDisk{room}, rowfiletest.Seq([]spec.Measurement{m})); !errors.Is(err, errFull) {
			t.Errorf("room for %d of %d bytes: %v", room, whole.Len(), err)
		}
	}
}
