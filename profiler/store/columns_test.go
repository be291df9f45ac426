package store

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func seqOf(ms []spec.Measurement) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		for _, m := range ms {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func gather(seq iter.Seq2[spec.Measurement, error]) (ms []spec.Measurement, errs []error) {
	for m, err := range seq {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ms = append(ms, m)
	}
	return ms, errs
}

// draw fills v with a random value that the store accepts there.
func draw(t *rapid.T, v reflect.Value, name string) {
	text := rapid.StringMatching(`[a-zé"\\, ={}-]{0,8}`)
	num := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1e300, 1e300))
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		if ns := rapid.Int64().Draw(t, name); ns%3 != 0 {
			*p = time.Unix(0, ns).UTC()
		}
		return
	case *map[string]float64:
		if m := rapid.MapOfN(text, num, 0, 3).Draw(t, name); len(m) > 0 {
			*p = m
		}
		return
	case *map[string]string:
		if m := rapid.MapOfN(text, text, 0, 3).Draw(t, name); len(m) > 0 {
			*p = m
		}
		return
	case *spec.Adapter:
		if rank := rapid.IntRange(0, 64).Draw(t, name); rank > 0 {
			*p = spec.Adapter{Kind: rapid.SampledFrom([]spec.AdapterKind{spec.LoRA, spec.QLoRA, spec.DoRA}).Draw(t, name), Rank: rank,
				Modules: spec.AdapterModules(rapid.IntRange(1, 7).Draw(t, name))}
		}
		return
	case *[]float64:
		if s := rapid.SliceOfN(rapid.Float64Range(1e-9, 1e9), 0, 5).Draw(t, name); len(s) > 0 {
			*p = s
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") == "-" { // not stored with the row
				continue
			}
			draw(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString(text.Draw(t, name))
	case reflect.Int:
		v.SetInt(int64(rapid.IntRange(0, 1<<40).Draw(t, name)))
	case reflect.Float64:
		v.SetFloat(num.Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	default:
		t.Fatalf("%s: no generator for %s", name, v.Type())
	}
}

// drawn is a measurement with random values in every field, within the rules of Check.
var drawn = rapid.Custom(func(t *rapid.T) spec.Measurement {
	var m spec.Measurement
	draw(t, reflect.ValueOf(&m).Elem(), "m")
	name := rapid.StringMatching(`[a-zé/ -]{1,6}`)
	m.Config.Model.Name, m.Config.Accelerator.Name, m.Source = name.Draw(t, "model"), name.Draw(t, "accelerator"), name.Draw(t, "source")
	m.Outcome = rapid.SampledFrom([]spec.Outcome{spec.OOM, spec.Timeout, spec.Failed}).Draw(t, "outcome")
	if m.PeakBytes < 0 {
		m.PeakBytes = -m.PeakBytes
	}
	if len(m.StepSec) > 0 {
		m.Outcome = spec.OK
	}
	m.Config.AloneStage = rapid.IntRange(0, max(m.Config.Plan.PP, 1)).Draw(t, "alone stage")
	return m
})

var formats = []struct {
	format Format
	write  func(*bytes.Buffer, iter.Seq2[spec.Measurement, error]) (int, error)
	read   func([]byte) iter.Seq2[spec.Measurement, error]

	readFile func(path string) iter.Seq2[spec.Measurement, error]
}{
	{Parquet,
		func(w *bytes.Buffer, s iter.Seq2[spec.Measurement, error]) (int, error) { return WriteParquet(w, s) },
		func(b []byte) iter.Seq2[spec.Measurement, error] {
			return ReadParquetFrom("mem", bytes.NewReader(b), int64(len(b)))
		}, ReadParquet},
	{Arrow,
		func(w *bytes.Buffer, s iter.Seq2[spec.Measurement, error]) (int, error) { return WriteArrow(w, s) },
		func(b []byte) iter.Seq2[spec.Measurement, error] {
			return readRows("mem", bytes.NewReader(b), int64(len(b)), readArrow)
		}, ReadArrow},
}

func TestFilesRoundTrip(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f.format), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := rapid.SliceOfN(drawn, 0, 4).Draw(t, "rows")
				var b bytes.Buffer
				n, err := 0, error(nil)
				if f.format == Parquet { // a zstd encoder for each column takes longer than the rest of the test
					n, err = writeParquet(&b, seqOf(want), compress.Codecs.Uncompressed)
				} else {
					n, err = f.write(&b, seqOf(want))
				}
				if err != nil || n != len(want) {
					t.Fatal(n, err)
				}
				got, errs := gather(f.read(b.Bytes()))
				if errs != nil {
					t.Fatal(errs)
				}
				if d := cmp.Diff(want, got); len(want) > 0 && d != "" {
					t.Fatal(d)
				}
			})
		})
	}
}

// TestRecordRoundTrip also checks that the store keeps every field.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawn.Draw(t, "m")
		b, err := encodeRecord(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeRecord(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// TestFilesBatches uses several record batches and row groups, and several buffers of the column readers.
func TestFilesBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads thousands of rows in each format")
	}
	want := inventedRows(rowsPerBatch + 77)
	for i := range want {
		if i%3 == 0 && want[i].Outcome == spec.OK {
			want[i].StepSec = make([]float64, 1+i%700)
			for k := range want[i].StepSec {
				want[i].StepSec[k] = float64(i) + 1/float64(k+1)
			}
		}
	}
	for _, f := range formats {
		t.Run(string(f.format), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rows")
			if n, err := ExportFile(path, f.format, seqOf(want)); err != nil || n != len(want) {
				t.Fatal(n, err)
			}
			got, errs := gather(f.readFile(path))
			if errs != nil {
				t.Fatal(errs)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
		})
	}
}

func TestStoreToFileToStore(t *testing.T) {
	ctx := context.Background()
	a, b := openTest(t, t.TempDir(), Options{}), openTest(t, t.TempDir(), Options{})
	if err := a.Put(ctx, inventedRows(300)...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rows.parquet")
	if n, err := ExportFile(path, Parquet, a.Query(ctx, Filter{})); err != nil || n != 300 {
		t.Fatal(n, err)
	}
	ms, errs := gather(ReadParquet(path))
	if errs != nil {
		t.Fatal(errs)
	}
	if err := b.Put(ctx, ms...); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(collect(t, a, Filter{}), collect(t, b, Filter{})); d != "" {
		t.Fatal(d)
	}
	if c, err := a.PutAll(ctx, ms...); err != nil || c != (Counts{Unchanged: 300}) {
		t.Errorf("importing the store's own export: %+v, %v, want all unchanged", c, err)
	}
}

func TestExportFileErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rows.parquet")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	seq := func(yield func(spec.Measurement, error) bool) {
		if yield(invented(0), nil) {
			yield(spec.Measurement{}, boom)
		}
	}
	if n, err := ExportFile(path, Parquet, seq); !errors.Is(err, boom) || n != 1 {
		t.Errorf("got %d, %v, want 1 row and the error of the rows", n, err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("the file is now %q", b)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
	if _, err := ExportFile(filepath.Join(dir, "no", "rows"), Arrow, seqOf(nil)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	if _, err := ExportFile(path, "csv", seqOf(nil)); err == nil {
		t.Error("format csv was accepted")
	}
}

func TestFormatOf(t *testing.T) {
	for path, want := range map[string]Format{"a.parquet": Parquet, "b/c.PQ": Parquet, "x.arrow": Arrow, "x.feather": Arrow, "x.csv": "", "x": ""} {
		if got, err := FormatOf(path); got != want || (err == nil) != (want != "") {
			t.Errorf("FormatOf(%q) = %q, %v, want %q", path, got, err, want)
		}
	}
}
