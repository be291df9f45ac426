package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/importer"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// writeFiles writes files, by slash-separated name, below dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		spectest.WriteFile(t, name, []byte(text), 0o644)
	}
}

const rubickHead = "exec_plan,placement,iter_time\n"

// twoClones are invented clones of two data sets.
var twoClones = map[string]string{
	"rubick/simulator/traces/vit/placements.csv":  rubickHead + "ga,1,0.125\nga,2,0.25\n",
	"rubick/simulator/traces/bert/placements.csv": rubickHead + "ga,1,0.5\n",
	"gavel/scheduler/some_throughputs.json":       `{"v100": {"('A3C', 1)": {"null": 0.5}}}` + "\n",
}

// importInto runs pacer import and returns what it counted.
func importInto(t *testing.T, data string, wantCode int, args ...string) (got importer.Result) {
	t.Helper()
	var out, log bytes.Buffer
	if code := run(t.Context(), append([]string{"pacer", "--data", data, "--output", "json", "import"}, args...), nil, &out, &log); code != wantCode {
		t.Fatalf("%q: exit code %d, want %d: %s", args, code, wantCode, log.String())
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil && out.Len() > 0 {
		t.Fatal(err)
	}
	return got
}

// TestImportFromAnyFolder imports folders of one clone one after another: rows are stored once.
func TestImportFromAnyFolder(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, twoClones)
	for _, first := range []string{"rubick", "rubick/simulator", "rubick/simulator/traces", "."} {
		data := t.TempDir()
		if got := importInto(t, data, fail.OK, "rubick", filepath.Join(dir, first)); got.Added != 3 {
			t.Errorf("%s: added %d, want 3", first, got.Added)
		}
		for _, second := range []string{"rubick", "rubick/simulator", "rubick/simulator/traces", "."} {
			if got := importInto(t, data, fail.OK, "rubick", filepath.Join(dir, second)); got.Unchanged != 3 || got.Added != 0 {
				t.Errorf("%s after %s: %+v, want 3 unchanged", second, first, got)
			}
		}
	}
}

// TestImportIntoWrittenStore imports into a store of an earlier program, which recorded paths below
// the folder given: testdata/written/data_sets.tar.gz has the rows of twoClones, from
// rubick/simulator and gavel.
func TestImportIntoWrittenStore(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	writeFiles(t, dir, twoClones)
	unpackStore(t, "testdata/written/data_sets.tar.gz", filepath.Join(data, "store"))
	for range 2 {
		for _, folder := range []string{"rubick", "rubick/simulator", "rubick/simulator/traces"} {
			if got := importInto(t, data, fail.OK, "rubick", filepath.Join(dir, folder)); got.Unchanged != 3 || got.Added != 0 {
				t.Errorf("%s: %+v, want 3 unchanged", folder, got)
			}
		}
		for _, folder := range []string{"gavel", "gavel/scheduler"} {
			if got := importInto(t, data, fail.OK, "gavel", filepath.Join(dir, folder)); got.Unchanged != 1 || got.Added != 0 {
				t.Errorf("%s: %+v, want 1 unchanged", folder, got)
			}
		}
	}
	writeFiles(t, dir, map[string]string{"rubick/simulator/traces/vit/placements.csv": rubickHead + "ga,1,0.125\nga,2,0.25\nga,3,0.375\n"})
	if got := importInto(t, data, fail.OK, "rubick", filepath.Join(dir, "rubick")); got.Unchanged != 3 || got.Added != 1 {
		t.Errorf("with a new row: %+v, want 3 unchanged, 1 added", got)
	}
}

// TestImportForeignTable: a table with other columns is left out and named, whether it is read first
// or last. If there is no other table, nothing is stored.
func TestImportForeignTable(t *testing.T) {
	for _, model := range []string{"bert", "vit"} { // the first and the last file
		dir, data := t.TempDir(), t.TempDir()
		writeFiles(t, dir, map[string]string{
			"gpt2/placements.csv":         rubickHead + "ga,1,0.125\nga,2,0.25\n",
			model + "/placements.csv":     "day,rain\n1,2\n",
			"not-a-table/placements.json": "{}",
		})
		if got := importInto(t, data, fail.Partial, "rubick", dir); got.Added != 2 || got.Bad != 1 {
			t.Errorf("%s: %+v, want 2 added, 1 bad", model, got)
		}
	}
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "none")
	writeFiles(t, dir, map[string]string{"vit/placements.csv": "day,rain\n1,2\n"})
	importInto(t, data, fail.Failed, "rubick", dir)
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("a store was created: %v", err)
	}
}

// TestImportWarnings: a row is counted once, and each warning names its first row.
func TestImportWarnings(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	writeFiles(t, dir, map[string]string{
		"roberta/placements.csv": rubickHead + "gc,1,0.5\nga,1,0.125\nzero-dp,1,0.25\n", // the last two doubted
		"t5_3B/placements.csv":   rubickHead + "tp+ga,3,0.9\n",                          // tp=3 does not divide 32 heads
	})
	var out, log bytes.Buffer
	if code := run(t.Context(), []string{"pacer", "--data", data, "--output", "csv", "import", "rubick", dir}, nil, &out, &log); code != fail.OK {
		t.Fatalf("exit code %d: %s", code, log.String())
	}
	if want := "\nrubick,4,4,0,0,3,0,0\n"; !strings.Contains(out.String(), want) {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	for _, want := range []string{
		"kept: 2 row(s), first simulator/traces/roberta/placements.csv:3: in doubt: roberta on one device",
		"kept: 1 row(s), first simulator/traces/t5_3B/placements.csv:2: ",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log %q, want %q", log.String(), want)
		}
	}
}

// TestImportUnstorableRow: a row that the store refuses is left out like an unreadable one.
func TestImportUnstorableRow(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	writeFiles(t, dir, map[string]string{"rows.csv": "row_id,model,accelerator,num_gpus,seq_len,micro_batch,global_batch,step_time_s\n" +
		"r1,Llama3-8B,H100,8,8192,1,8,2\n" +
		"r2," + strings.Repeat("x", 600) + ",H100,8,8192,1,8,2\n" +
		"r3,Llama3-8B,H100,8,8192,1,16,3\n"})
	if got := importInto(t, data, fail.Partial, "published", dir); got.Added != 2 || got.Bad != 1 {
		t.Errorf("%+v, want 2 added, 1 bad", got)
	}
}
