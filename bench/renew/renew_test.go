package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const root = "../.."

// TestTablesAreTheResults: every table of docs/benchmarks is what its file in
// bench/results makes, every file has one place, and no table has no file. After a
// change of a file, run: go run ./bench/renew
func TestTablesAreTheResults(t *testing.T) {
	var used []string
	for _, page := range glob(t, pagesDir+"/*.md") {
		was := spectest.ReadFile(t, page)
		now, err := render(root, was)
		if err != nil {
			t.Errorf("%s: %v", page, err)
		} else if !bytes.Equal(was, now) {
			t.Errorf("%s differs from bench/results: run go run ./bench/renew and read the difference", page)
		}
		used = append(used, names(was)...)
		if filepath.Base(page) != "README.md" { // the index sets out questions, not results
			if rest := regexp.MustCompile(`(?s)\n<!-- [a-z0-9-]+ -->.*?<!-- /[a-z0-9-]+ -->\n`).ReplaceAll(was, nil); bytes.Contains(rest, []byte("\n|---")) {
				t.Errorf("%s has a table that is not made from a file in bench/results", page)
			}
		}
	}
	var files []string
	for _, file := range glob(t, resultsDir+"/*.csv") {
		files = append(files, strings.TrimSuffix(filepath.Base(file), ".csv"))
	}
	slices.Sort(used)
	slices.Sort(files)
	if !slices.Equal(used, files) {
		t.Errorf("tables of pages %v\nfiles           %v", used, files)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %v, %v", pattern, out, err)
	}
	return out
}

const sample = `some text

| workload | policy | average JCT | of fifo | makespan | of fifo | cost |
|---|---|---|---|---|---|---|
| base | fifo | **5512 ± 0 s** (9.81) | - | 76,991 s | - | 16 h 57 m |
| base | ` + "`pacer`" + ` | 1000 ± 24 s (1.78) | 0.181 (0.177 to 0.186) | 60339 s | 0.784 | |
`

func TestStoreAndRender(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{pagesDir, resultsDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, pagesDir, "p.md")
	spectest.WriteFile(t, page, []byte("above\n\n<!-- x -->\n<!-- /x -->\n\nbelow\n"), 0o644)
	if err := run(dir, []string{"x"}, strings.NewReader(sample)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, resultsDir, "x.csv"))
	want := `workload,policy,average JCT [s],average JCT ±,average JCT / bound,average JCT of fifo,average JCT of fifo from,average JCT of fifo to,makespan [s],makespan of fifo,cost
base,fifo,5512,0,9.81,-,,,76991,-,16 h 57 m
base,pacer,1000,24,1.78,0.181,0.177,0.186,60339,0.784,
`
	if err != nil || string(got) != want {
		t.Errorf("error %v, file\n%s\nwant\n%s", err, got, want)
	}
	got, err = os.ReadFile(page)
	want = `above

<!-- x -->

| workload | policy | average JCT | average JCT of fifo | makespan | makespan of fifo | cost |
|---|---|---|---|---|---|---|
| base | fifo | 5512 ± 0 s (9.81) | - | 76991 s | - | 16 h 57 m |
| base | pacer | 1000 ± 24 s (1.78) | 0.181 (0.177 to 0.186) | 60339 s | 0.784 |  |

<!-- /x -->

below
`
	if err != nil || string(got) != want {
		t.Errorf("error %v, page\n%s\nwant\n%s", err, got, want)
	}
	for name, in := range map[string]string{
		"nothing": "", "no row": "| a |\n|---|\n", "ragged": "| a |\n|---|\n| b | c |\n", "twice": "| a | a |\n|---|---|\n| b | c |\n", "no title": "| a | |\n|---|---|\n| b | c |\n",
	} {
		if err := run(dir, []string{"x"}, strings.NewReader(in)); err == nil {
			t.Errorf("%s is stored", name)
		}
	}
}
