package bench

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const pages = "../docs/benchmarks/"

var (
	stores  = regexp.MustCompile(`(?m)(?:^|[| ])(?:renew|study) ([a-z0-9-]+)`)
	picture = regexp.MustCompile(`!\[[^]]+\]\(([a-z0-9-]+\.svg)\)`)
)

// Every experiment states in its second line what it measures, can be run, and is named on each
// page with one of its tables.
func TestExperiments(t *testing.T) {
	for _, path := range glob(t, "experiments/*.sh") {
		name, script := filepath.Base(path), readFile(t, path)
		if !strings.HasPrefix(script, "#!/usr/bin/env bash\n# "+name+": ") {
			t.Errorf("%s does not begin with # %s: and what it measures", path, name)
		}
		if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s is not executable: %v", path, err)
		}
		tables := stores.FindAllStringSubmatch(script, -1)
		if len(tables) == 0 {
			t.Errorf("%s stores no table", path)
		}
		for _, table := range tables {
			page := pageOf(t, table[1])
			if !strings.Contains(page, "bench/experiments/"+name) {
				t.Errorf("the page with table %s does not name %s", table[1], path)
			}
		}
	}
}

// pageOf returns the text of the page with a table.
func pageOf(t *testing.T, table string) string {
	t.Helper()
	for _, path := range glob(t, pages+"*.md") {
		if text := readFile(t, path); strings.Contains(text, "\n<!-- "+table+" -->\n") {
			return text
		}
	}
	t.Errorf("no page in %s has the table %s", pages, table)
	return ""
}

// Every picture is on a page, and the pictures of every page exist.
func TestPicturesAreShown(t *testing.T) {
	var shown, there []string
	for _, path := range glob(t, pages+"*.md") {
		for _, m := range picture.FindAllStringSubmatch(readFile(t, path), -1) {
			shown = append(shown, m[1])
		}
	}
	for _, path := range glob(t, pages+"*.svg") {
		there = append(there, filepath.Base(path))
	}
	slices.Sort(shown)
	slices.Sort(there)
	if !slices.Equal(shown, there) {
		t.Errorf("pages show %v, there are %v", shown, there)
	}
}

var (
	row     = regexp.MustCompile(`(?m)^\| (.+) \| (.+) \| (.+) \| \[.+\]\(([a-z0-9-]+\.md)\) \|$`)
	numeral = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)
)

// Every page is in the index, and every number in the index is on the page of the measurement.
func TestIndexAgrees(t *testing.T) {
	index := readFile(t, pages+"README.md")
	listed := map[string]bool{"README.md": true}
	for _, m := range row.FindAllStringSubmatch(index, -1) {
		listed[m[4]] = true
		said := numbersIn(readFile(t, pages+m[4]))
		for _, n := range numbersIn(m[3]) {
			if !slices.Contains(said, n) {
				t.Errorf("the index says %s of %q, and %s does not", n, m[1], m[4])
			}
		}
	}
	for _, path := range glob(t, pages+"*.md") {
		if !listed[filepath.Base(path)] {
			t.Errorf("%s is not in the index", path)
		}
	}
}

// numbersIn returns the numbers of a text, without commas in thousands.
func numbersIn(text string) []string {
	found := numeral.FindAllString(text, -1)
	for i := range found {
		found[i] = strings.ReplaceAll(found[i], ",", "")
	}
	return found
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b := spectest.ReadFile(t, path)
	return string(b)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := filepath.Glob(pattern)
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %v, %v", pattern, out, err)
	}
	return out
}
