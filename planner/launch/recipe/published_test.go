package recipe

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// columns are those of expected.csv that a recipe states.
var columns = []Field{ModelName, Layers, Hidden, Heads, KVHeads, FFN, Vocab, SeqLen, DP, TP, PP, CP, EP, VPP, ZeRO, Offload, Recompute, MicroBatch, GradAccum, GlobalBatch, Precision, Optimizer, Adapter, LoRARank, Devices}

// published returns the directory of published launch files, and the rows of what each says, below a header.
func published(t *testing.T) (dir string, rows [][]string) {
	t.Helper()
	dir = filepath.Join(spectest.Shared(t), "data", "launch")
	f, err := os.Open(filepath.Join(dir, "expected.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err = csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return dir, rows
}

// Every value that two careful readers find in the published launch files is read.
func TestPublishedFiles(t *testing.T) {
	dir, rows := published(t)
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	values := 0
	for _, row := range rows[1:] {
		name := row[column["file"]]
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Read(name, text, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := row[column["framework"]]; r.Format != want {
			t.Errorf("%s: format %s, want %s", name, r.Format, want)
		}
		for _, of := range columns {
			want := row[column[string(of)]]
			if want == "" {
				continue
			}
			values++
			got := r.Text(of)
			if n, ok := r.Number(of); ok {
				got = strconv.Itoa(n)
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", name, of, got, want)
			}
		}
		if len(r.Unknown) > 0 {
			t.Logf("%s: unknown keys: %s", name, strings.Join(r.Unknown, " "))
		}
	}
	if values < 600 {
		t.Errorf("only %d values compared", values)
	}
	t.Logf("%d values of %d files", values, len(rows)-1)
}
