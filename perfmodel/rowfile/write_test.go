package rowfile

import (
	"bytes"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

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
				want := rapid.SliceOfN(rowfiletest.Drawn, 0, 4).Draw(t, "rows")
				var b bytes.Buffer
				n, err := 0, error(nil)
				if f.format == Parquet { // a zstd encoder for each column takes longer than the rest of the test
					n, err = writeParquet(&b, rowfiletest.Seq(want), compress.Codecs.Uncompressed)
				} else {
					n, err = f.write(&b, rowfiletest.Seq(want))
				}
				if err != nil || n != len(want) {
					t.Fatal(n, err)
				}
				got, errs := rowfiletest.Gather(f.read(b.Bytes()))
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

// TestFilesBatches uses several record batches and row groups, and several buffers of the column readers.
func TestFilesBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads thousands of rows in each format")
	}
	want := rowfiletest.InventedRows(rowsPerBatch + 77)
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
			if n, err := ExportFile(path, f.format, rowfiletest.Seq(want)); err != nil || n != len(want) {
				t.Fatal(n, err)
			}
			got, errs := rowfiletest.Gather(f.readFile(path))
			if errs != nil {
				t.Fatal(errs)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
		})
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
		if yield(rowfiletest.Invented(0), nil) {
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
	if _, err := ExportFile(filepath.Join(dir, "no", "rows"), Arrow, rowfiletest.Seq(nil)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	if _, err := ExportFile(path, "csv", rowfiletest.Seq(nil)); err == nil {
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

// TestAloneFiles: files have the stage, and a doubt for readers that do not know it. Reading takes that away, and keeps the
// row's own doubt and quarantine.
func TestAloneFiles(t *testing.T) {
	alone := func(stage int) spec.Measurement {
		m := rowfiletest.Invented(0)
		m.Config.Plan.PP, m.Config.AloneStage = 4, stage
		return m
	}
	doubted, quarantined := alone(2), alone(3).Quarantine("too slow")
	doubted.Doubt = "shared device"
	rows := []spec.Measurement{alone(1), doubted, quarantined}
	for _, f := range formats {
		var b bytes.Buffer
		if _, err := f.write(&b, rowfiletest.Seq(rows)); err != nil {
			t.Fatal(err)
		}
		got, err := rowfiletest.Gather(f.read(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(rows, got); d != "" {
			t.Errorf("%s: %s", f.format, d)
		}
	}
	at := 0
	for i, c := range columns {
		if c.name == "doubt" {
			at = i
		}
	}
	for i, want := range []string{"alone: not a whole step", "alone: not a whole step; shared device", "alone: not a whole step; quarantined: too slow"} {
		b := columnBuilder{column: &columns[at], room: 1}
		if err := b.add(&b, &rows[i], 1); err != nil || string(b.text) != want {
			t.Errorf("doubt %q in the file, %v, want %q", b.text, err, want)
		}
	}
}
