package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func mustWriteJobs(t testing.TB, w io.Writer, f Format, results []*sim.Result, score Score) {
	t.Helper()
	if err := WriteJobs(w, f, results, score); err != nil {
		t.Fatal(err)
	}
}

func mustWriteHTML(t testing.TB, w io.Writer, in HTMLInput) {
	t.Helper()
	if err := WriteHTML(w, in); err != nil {
		t.Fatal(err)
	}
}

// cellsOf reads a Parquet file as if it were CSV: a header, and the cells as text,
// null as the empty string.
func cellsOf(t *testing.T, b []byte) [][]string {
	t.Helper()
	table, err := pqarrow.ReadTable(context.Background(), bytes.NewReader(b), parquet.NewReaderProperties(memory.DefaultAllocator),
		pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	out := make([][]string, table.NumRows()+1)
	for i := range int(table.NumCols()) {
		field := table.Schema().Field(i)
		if doc, ok := field.Metadata.GetValue("doc"); !ok || doc == "" {
			t.Errorf("column %s has no doc", field.Name)
		}
		out[0] = append(out[0], field.Name)
		row := 1
		for _, chunk := range table.Column(i).Data().Chunks() {
			for k := range chunk.Len() {
				text := ""
				if chunk.IsValid(k) {
					switch a := chunk.(type) {
					case *array.String:
						text = a.Value(k)
					case *array.Int64:
						text = fmt.Sprint(a.Value(k))
					case *array.Float64:
						text = Number(a.Value(k)).String()
					}
				}
				out[row] = append(out[row], text)
				row++
			}
		}
	}
	return out
}

func records(t *testing.T, b []byte) [][]string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestJobsInBothFormats compares Parquet with CSV, over several row groups.
func TestJobsInBothFormats(t *testing.T) {
	results := append(small(), manyJobs(rowsPerGroup))
	for _, r := range results {
		for i := range r.Jobs {
			r.Jobs[i].Alone, r.Jobs[i].Usable = time.Duration(i+1)*time.Second, r.Devices
		}
	}
	results[0].Jobs[0].Job.Model.Name, results[0].Jobs[1].Job.Tenant = "gpt, \"2\"", "team"
	results[0].Jobs[5].Unfinished = "the run ended"
	var text, table bytes.Buffer
	mustWriteJobs(t, &text, CSV, results, Score{})
	mustWriteJobs(t, &table, Parquet, results, Score{})
	if diff := cmp.Diff(records(t, text.Bytes()), cellsOf(t, table.Bytes())); diff != "" {
		t.Errorf("-CSV +Parquet:\n%.2000s", diff)
	}
	f, err := file.NewParquetReader(bytes.NewReader(table.Bytes()))
	if err != nil || f.NumRowGroups() != 2 {
		t.Errorf("%d row groups, %v, want 2", f.NumRowGroups(), err)
	}
	fromText, err := ReadJobsCSV(&text, "jobs.csv")
	if err != nil {
		t.Fatal(err)
	}
	fromTable, err := ReadJobsParquet(bytes.NewReader(table.Bytes()), int64(table.Len()), "jobs.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromText, fromTable); diff != "" {
		t.Errorf("read back: -CSV +Parquet:\n%.2000s", diff)
	}
}

// TestEventsInBothFormats has every kind of event, with and without a job and a
// grant.
func TestEventsInBothFormats(t *testing.T) {
	j := &spec.Job{ID: "a"}
	g := &scheduler.Grant{Job: "a", Plan: spec.Plan{DP: 12, MicroBatch: 1, AccumSteps: 1}, Slots: []scheduler.Slot{{Node: 3, Devices: 8}, {Node: 5, Devices: 4}}}
	events := []sim.Event{
		{Kind: sim.Submitted, Job: j}, {At: 1, Kind: sim.Held, Job: j, Why: "full, for now"}, {At: time.Second + 1, Kind: sim.Started, Job: j, Grant: g},
		{At: 2 * time.Second, Kind: sim.Completed, Job: j, Grant: g}, {At: 3 * time.Second, Kind: sim.Rejected, Job: &spec.Job{ID: "b"}, Why: "too large"},
		{At: 4 * time.Second, Kind: sim.NodeDown, Node: 3},
		{At: 5 * time.Second, Kind: sim.Moved, Job: j, Grant: g, Why: "grows"}, {At: 6 * time.Second, Kind: sim.Stopped, Job: j, Grant: g},
		{At: 7 * time.Second, Kind: sim.Failed, Job: j, Grant: g, Node: 5}, {At: 8 * time.Second, Kind: sim.NodeUp, Node: 3},
		{At: 9 * time.Second, Kind: sim.Shared, Job: j, Grant: g.Beside("b")},
	}
	write := func(f Format) []byte {
		var b bytes.Buffer
		w, err := NewEventWriter(&b, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range []string{"fifo", "las:quantum=10"} {
			observe := w.Observer(policy)
			for _, e := range events {
				observe(e)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	got := records(t, write(CSV))
	if diff := cmp.Diff(got, cellsOf(t, write(Parquet))); diff != "" {
		t.Errorf("-CSV +Parquet:\n%s", diff)
	}
	want := []string{"fifo", "1.000000001", "started", "a", "12", "2", "3:8 5:4", "dp=12,tp=1,pp=1,mb=1,ga=1", "", "", ""}
	if len(got) != 1+2*len(events) || cmp.Diff(want, got[3]) != "" {
		t.Errorf("%d rows, the third %q, want %q", len(got)-1, got[3], want)
	}
	want = []string{"fifo", "4", "down", "", "", "", "", "", "", "3", ""}
	if diff := cmp.Diff(want, got[6]); diff != "" {
		t.Errorf("a node that goes down (-want +got):\n%s", diff)
	}
	want = []string{"fifo", "7", "failed", "a", "12", "2", "3:8 5:4", "dp=12,tp=1,pp=1,mb=1,ga=1", "", "5", ""}
	if diff := cmp.Diff(want, got[9]); diff != "" {
		t.Errorf("a job that a node takes down (-want +got):\n%s", diff)
	}
	want = []string{"fifo", "9", "shared", "a", "12", "2", "3:8 5:4", "dp=12,tp=1,pp=1,mb=1,ga=1", "", "", "b"}
	if diff := cmp.Diff(want, got[11]); diff != "" {
		t.Errorf("a job that goes on beside another (-want +got):\n%s", diff)
	}
}

// TestEventWriterOnFullDisk checks that the first error is reported once, and returned
// by Err and Close.
func TestEventWriterOnFullDisk(t *testing.T) {
	for _, f := range []Format{CSV, Parquet} {
		calls := 0
		w, err := NewEventWriter(fullDisk{}, f, func(error) { calls++ })
		if err != nil {
			t.Fatal(f, err)
		}
		observe := w.Observer("fifo")
		for range 2 * rowsPerGroup {
			observe(sim.Event{Job: &spec.Job{ID: "a"}})
		}
		if calls != 1 || !errors.Is(w.Err(), errFull) || !errors.Is(w.Close(), errFull) {
			t.Errorf("%s: reported %d times, then %v, %v", f, calls, w.Err(), w.Close())
		}
	}
}

// TestReadJobsParquetOfOthers checks the errors for files that are not Parquet, or
// have other columns.
func TestReadJobsParquetOfOthers(t *testing.T) {
	var whole, events bytes.Buffer
	mustWriteJobs(t, &whole, Parquet, small(), Score{})
	w, err := NewEventWriter(&events, Parquet, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var twice bytes.Buffer
	mustWriteJobs(t, &twice, Parquet, append(small(), small()[0]), Score{})
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "not a whole Parquet file"},
		{whole.Bytes()[:whole.Len()-9], "not a whole Parquet file"},
		{events.Bytes(), "no column submit_s"},
		{twice.Bytes(), "row 13: job 1 is also in row 1"},
	} {
		_, err := ReadJobsParquet(bytes.NewReader(c.b), int64(len(c.b)), "f.parquet")
		if err == nil || !strings.HasPrefix(err.Error(), "report: f.parquet: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes: %v, want %q", len(c.b), err, c.want)
		}
	}
}

// TestReadJobsParquetDamaged overwrites every other byte of a file in turn, including
// metadata and levels: the result is rows or an error, without a long wait.
func TestReadJobsParquetDamaged(t *testing.T) {
	var whole bytes.Buffer
	mustWriteJobs(t, &whole, Parquet, small(), Score{})
	failed := 0
	for at := 0; at < whole.Len(); at += 2 {
		b := bytes.Clone(whole.Bytes())
		b[at] = ^b[at]
		_, err := ReadJobsParquet(bytes.NewReader(b), int64(len(b)), "f.parquet")
		if err != nil {
			failed++
		}
	}
	if failed < 10 {
		t.Errorf("%d of %d damages noticed", failed, whole.Len())
	}
}

// TestFormatTables compares the tables in FORMAT.md with the columns.
func TestFormatTables(t *testing.T) {
	b := spectest.ReadFile(t, "FORMAT.md")
	for name, want := range map[string]string{"jobs": formatTable(jobColumns), "events": formatTable(eventColumns)} {
		if !strings.Contains(string(b), want) {
			t.Errorf("FORMAT.md lacks the table of %s:\n%s", name, want)
		}
	}
}

func formatTable[T any](columns []column[T]) string {
	var b strings.Builder
	b.WriteString("| column | type | unit | |\n|---|---|---|---|\n")
	for _, c := range columns {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.name, c.kind, c.unit, c.doc)
	}
	return b.String()
}
