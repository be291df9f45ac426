package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// raceOf are the parts of the module where the race detector runs.
var raceOf = []string{"perfmodel", "planner", "profiler", "scheduler"}

// notRaced are packages and tests with goroutines that make race leaves out.
var notRaced = map[string]string{
	"scheduler/live/kubernetes":              "waits for a real Kubernetes",
	"scheduler/live/kubernetes/kubetest":     "waits for a real Kubernetes",
	"scheduler/live/slurm":                   "waits for a real Slurm",
	"scheduler/live/slurm/slurmtest":         "waits for a real Slurm",
	"scheduler/schedulertest":                "starts processes; and TestSoak, of make soak",
	"planner/launch/recipe/TestHostileFiles": "a goroutine for the deadline alone",
	"profiler/worker/TestTimer":              "starts a process",
	"profiler/store/TestStoreOnFullDisk":     "the goroutine fills another file",
	"planner/remote/ExampleDial":             "without -race in unit",
}

// TestRaceRunsGoroutines: make race runs the tests that start goroutines, and the packages with other functions that do.
func TestRaceRunsGoroutines(t *testing.T) {
	raced := selectionsOf(t, "race")
	found := 0
	for _, f := range files(t, "GoFiles", "TestGoFiles", "XTestGoFiles") {
		dir, file, _ := strings.Cut(f, "=")
		pkg := strings.TrimPrefix(dir, module)
		part, _, _ := strings.Cut(pkg, "/")
		if !slices.Contains(raceOf, part) || notRaced[pkg] != "" {
			continue
		}
		for _, name := range concurrent(t, file) {
			if notRaced[pkg+"/"+name] != "" {
				continue
			}
			found++
			if !slices.ContainsFunc(raced, func(s selection) bool {
				return s.packages[dir] && (s.run == nil || !strings.HasPrefix(name, "Test") || s.run.MatchString(name))
			}) {
				t.Errorf("%s: %s starts goroutines, and make race does not run it", pkg, name)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d functions that start goroutines, want those of the module", found)
	}
}

// oneCore has, by package of the scheduler that starts goroutines, the test that its results are equal on one core.
var oneCore = map[string]string{
	"scheduler/learn":        "", // TestDeterministic sets the number of cores
	"scheduler/policy/synth": "scheduler/policy/builtin/TestSynthOfOneIsThatOne",
	"scheduler/study":        "scheduler/study/TestRunnerIsDeterministic",
}

// TestOneCoreRunsGoroutines: make unit runs on one core the packages of the scheduler with results that could depend on it.
func TestOneCoreRunsGoroutines(t *testing.T) {
	var one []selection
	for _, line := range commands(t, "unit") {
		if _, args, ok := strings.Cut(line, "./bench/gotest"); ok && strings.Contains(args, "-cpu 1 ") {
			one = append(one, parseSelection(t, args))
		}
	}
	found := map[string]bool{}
	for _, f := range files(t, "GoFiles") {
		dir, file, _ := strings.Cut(f, "=")
		pkg := strings.TrimPrefix(dir, module)
		if !strings.HasPrefix(pkg, "scheduler/") || strings.HasPrefix(pkg, "scheduler/live/") || pkg == "scheduler/live" || len(concurrent(t, file)) == 0 {
			continue
		}
		test, ok := oneCore[pkg]
		if found[pkg] = true; !ok {
			t.Errorf("%s starts goroutines: want a test in oneCore", pkg)
		}
		if of, name := path.Split(test); test != "" && !slices.ContainsFunc(one, func(s selection) bool {
			return s.selects(module+strings.TrimSuffix(of, "/"), name)
		}) {
			t.Errorf("make unit does not run %s on one core", test)
		}
	}
	if len(found) != len(oneCore) {
		t.Errorf("goroutines in %v, want in all of %v", found, oneCore)
	}
}

// concurrent returns the functions of a file that start goroutines.
func concurrent(t *testing.T, name string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || strings.HasPrefix(f.Name.Name, "Benchmark") && strings.HasSuffix(filepath.Base(name), "_test.go") {
			continue
		}
		starts := false
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts = true
			case *ast.CallExpr: // of sync.WaitGroup, errgroup.Group and testing.T
				s, ok := n.Fun.(*ast.SelectorExpr)
				starts = starts || ok && (s.Sel.Name == "Go" || s.Sel.Name == "Parallel")
			}
			return !starts
		})
		if starts {
			names = append(names, f.Name.Name)
		}
	}
	return names
}
