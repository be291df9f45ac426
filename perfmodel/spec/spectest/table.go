package spectest

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"
)

// Records returns the lines of a CSV file of the shared data sets, header first.
func Records(t testing.TB, file string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(Shared(t), file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s: no header", file)
	}
	return all
}

// Table returns the rows of a CSV file of the shared data sets, each a map from column to cell.
func Table(t testing.TB, file string) []map[string]string {
	t.Helper()
	all := Records(t, file)
	out := make([]map[string]string, len(all)-1)
	for i, record := range all[1:] {
		out[i] = map[string]string{}
		for k, cell := range record {
			out[i][all[0][k]] = cell
		}
	}
	return out
}
