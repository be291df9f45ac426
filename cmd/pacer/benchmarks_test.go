package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// TestMeasuredTable: the table of docs/benchmarks/prediction-vs-measured.md is what
// the demo prints. The demo reads embedded data only, so the figures are exact.
func TestMeasuredTable(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the demo")
	}
	const path = "../../bench/results/measured-cpu.csv"
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"pacer", "demo", "--out", t.TempDir()}, nil, &out, &errs); code != fail.OK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, row := range want[1:] {
		line := ""
		for l := range strings.Lines(out.String()) {
			if strings.HasPrefix(l, row[0]+" ") {
				line = l
				break
			}
		}
		if got := strings.Fields(strings.ReplaceAll(line, " %", "")); strings.Join(got, ",") != strings.Join(row, ",") {
			t.Errorf("the demo prints %v, %s has %v", got, path, row)
		}
	}
}
