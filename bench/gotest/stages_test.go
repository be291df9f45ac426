package main

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const (
	root   = "../.."
	module = "github.com/pacer-ml/pacer/"
)

// TestStagesRunEveryTest: end-to-end tests are below cmd and run in e2e, all others in unit.
func TestStagesRunEveryTest(t *testing.T) {
	unit, e2e := selectionsOf(t, "unit"), selectionsOf(t, "e2e")
	endToEnd := regexp.MustCompile(`^Test(E2E|Script)`)
	tests := moduleTests(t)
	if len(tests) < 1000 {
		t.Fatalf("found %d tests, want those of the module", len(tests))
	}
	for _, test := range tests {
		pkg, name := path.Split(test)
		pkg = strings.TrimSuffix(pkg, "/")
		e := endToEnd.MatchString(name)
		if e && !strings.HasPrefix(pkg, module+"cmd/") {
			t.Errorf("%s: an end-to-end test is in a package below cmd", test)
		}
		runs := func(s selection) bool { return s.selects(pkg, name) }
		if slices.ContainsFunc(unit, runs) == e || slices.ContainsFunc(e2e, runs) != e {
			t.Errorf("%s: want it to run in one of unit and e2e", test)
		}
	}
}

// TestStagesRunTaggedTests: the tests of files with build tags that unit names are those of that line.
func TestStagesRunTaggedTests(t *testing.T) {
	var tagged selection
	for _, line := range commands(t, "unit") {
		if strings.Contains(line, "-tags clp") {
			tagged = parseSelection(t, line[strings.Index(line, "-tags clp"):])
		}
	}
	text := spectest.ReadFile(t, filepath.Join(root, "scheduler/internal/lp/oracle_test.go"))
	for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
		if !tagged.selects(module+"scheduler/internal/lp", m[1]) {
			t.Errorf("make unit does not run %s of scheduler/internal/lp/oracle_test.go", m[1])
		}
	}
}

// A selection is the packages and tests of one run of go test.
type selection struct {
	packages  map[string]bool
	run, skip *regexp.Regexp
}

func (s selection) selects(pkg, name string) bool {
	return s.packages[pkg] && (s.run == nil || s.run.MatchString(name)) && (s.skip == nil || !s.skip.MatchString(name))
}

// selectionsOf returns what a target of the Makefile runs with gotest.
func selectionsOf(t *testing.T, target string) (out []selection) {
	t.Helper()
	for _, line := range commands(t, target) {
		if _, args, ok := strings.Cut(line, "./bench/gotest"); ok {
			out = append(out, parseSelection(t, args))
		}
	}
	if len(out) == 0 {
		t.Fatalf("make %s does not run gotest", target)
	}
	return out
}

// commands returns the lines that make would run for a target.
func commands(t *testing.T, target string) []string {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		spectest.Lacks(t, "no make command")
	}
	cmd := exec.Command("make", "-n", target)
	cmd.Dir = root
	for _, v := range os.Environ() { // without the settings of a make that runs this test
		if name, _, _ := strings.Cut(v, "="); !slices.Contains([]string{"MAKEFLAGS", "MFLAGS"}, name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("make -n %s: %v", target, err)
	}
	return strings.Split(string(out), "\n")
}

// parseSelection reads flags and packages of go test, as written for a shell.
func parseSelection(t *testing.T, args string) (s selection) {
	t.Helper()
	words := strings.Split(strings.TrimSpace(output(t, "bash", "-c", "printf '%s\n' "+args)), "\n")
	var patterns []string
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "-run":
			i++
			s.run = regexp.MustCompile(words[i])
		case "-skip":
			i++
			s.skip = regexp.MustCompile(words[i])
		case "-timeout", "-cpu", "-tags":
			i++
		default:
			if !strings.HasPrefix(words[i], "-") {
				patterns = append(patterns, words[i])
			}
		}
	}
	s.packages = map[string]bool{}
	for _, pkg := range goList(t, append([]string{"{{.ImportPath}}"}, patterns...)...) {
		s.packages[pkg] = true
	}
	return s
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)(?:[^a-z(]\w*)?)\((?:\w+ \*testing\.[TF])?\)`)

// moduleTests lists every test, example and fuzz target as PACKAGE/NAME.
func moduleTests(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, f := range files(t, "TestGoFiles", "XTestGoFiles") {
		pkg, file, _ := strings.Cut(f, "=")
		text := spectest.ReadFile(t, file)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			found[pkg+"/"+m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// files lists the files of the module of some lists of go list, as PACKAGE=PATH.
func files(t *testing.T, lists ...string) []string {
	t.Helper()
	template := "{{$p := .}}"
	for _, l := range lists {
		template += "{{range ." + l + `}}{{$p.ImportPath}}={{$p.Dir}}/{{.}}{{"\n"}}{{end}}`
	}
	return goList(t, template, "./...")
}

// goList runs go list -f with a template and packages.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	return strings.Fields(output(t, "go", append([]string{"list", "-f"}, args...)...))
}

// output runs a command in the root of the module.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return string(out)
}
