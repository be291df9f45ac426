package bench

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const results = "../docs/results.md"

var (
	section = regexp.MustCompile(`(?m)^<!-- ([a-z0-9-]+) -->$`)
	picture = regexp.MustCompile(`\(results/([a-z0-9-]+\.svg)\)`)
)

// Every experiment has its place in docs/results.md and says what it is about, and
// every place an experiment that renews it.
func TestExperimentsHaveTheirPlace(t *testing.T) {
	text := readFile(t, results)
	var scripts []string
	for _, path := range glob(t, "experiments/*.sh") {
		name := strings.TrimSuffix(filepath.Base(path), ".sh")
		scripts = append(scripts, name)
		if !strings.HasPrefix(readFile(t, path), "#!/usr/bin/env bash\n# "+name+".sh: ") {
			t.Errorf("%s does not begin with # %s.sh: and what it is about", path, name)
		}
		if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be run: %v, %v", path, info.Mode(), err)
		}
		if n := strings.Count(text, "\n<!-- "+name+" -->\n"); n != 1 || strings.Count(text, "\n<!-- /"+name+" -->\n") != 1 {
			t.Errorf("%s has no place in %s: one line <!-- %s --> and one <!-- /%s -->", path, results, name, name)
		}
		if !strings.Contains(text, "experiments/"+name+".sh") {
			t.Errorf("%s does not say that %s makes what is at %s", results, path, name)
		}
	}
	for _, m := range section.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(scripts, m[1]) {
			t.Errorf("%s has a place %s, and there is no experiments/%s.sh", results, m[1], m[1])
		}
	}
}

// Every picture is shown, and every picture that is shown is there.
func TestPicturesAreShown(t *testing.T) {
	var shown, there []string
	for _, m := range picture.FindAllStringSubmatch(readFile(t, results), -1) {
		shown = append(shown, m[1])
	}
	for _, path := range glob(t, "../docs/results/*.svg") {
		there = append(there, filepath.Base(path))
	}
	slices.Sort(shown)
	slices.Sort(there)
	if shown = slices.Compact(shown); !slices.Equal(shown, there) {
		t.Errorf("%s shows %v, there are %v", results, shown, there)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
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

var heading = regexp.MustCompile("(?m)^##+ (.*)$")

// The contents have every section, and what is said in short of it is said below too:
// who renews a table is told what to correct at the head.
func TestResultsInShort(t *testing.T) {
	head, body, ok := strings.Cut(readFile(t, results), "\n## Contents\n")
	contents, body, found := strings.Cut(body, "\n## ")
	if body = "\n## " + body; !ok || !found {
		t.Fatalf("%s has no contents", results)
	}
	for _, m := range heading.FindAllStringSubmatch(body, -1) {
		if title := strings.ReplaceAll(m[1], "`", ""); !strings.Contains(contents, "["+title+"](#") {
			t.Errorf("the contents of %s lack %q", results, title)
		}
	}
	_, table, ok := strings.Cut(head, "\n| question | bar (aim) | measured | command |\n")
	if !ok {
		t.Fatalf("%s has no table of questions", results)
	}
	said := map[string]bool{}
	for _, n := range numbersIn(body) {
		said[n] = true
	}
	for _, line := range strings.Split(table, "\n")[1:] {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			for _, n := range numbersIn(cells[2]) {
				if !said[n] {
					t.Errorf("%s says %s of %q at its head, and nowhere below", results, n, cells[0])
				}
			}
		}
	}
}

var numeral = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)

// numbersIn returns the numbers of a text, without commas in thousands.
func numbersIn(text string) []string {
	found := numeral.FindAllString(text, -1)
	for i := range found {
		found[i] = strings.ReplaceAll(found[i], ",", "")
	}
	return found
}
