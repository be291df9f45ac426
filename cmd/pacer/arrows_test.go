package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pacer-ml/pacer"

// A floor is a part of the tree with rules about what its packages may import.
type floor struct {
	dir  string   // of the packages, with everything below it
	may  []string // the directories, with everything below, it may import from
	root bool     // whether the package at dir may import those below dir
	std  bool     // whether only the standard library is allowed besides
}

// floors holds the arrows: imports point one way, to the floors below. The
// longest matching dir decides.
var floors = []floor{
	{dir: "perfmodel/spec", may: []string{"perfmodel/spec"}, std: true},
	{dir: "perfmodel/spec/spectest", may: []string{"perfmodel/spec"}},
	{dir: "perfmodel", may: []string{"perfmodel"}},
	{dir: "planner", may: []string{"perfmodel", "planner"}},
	{dir: "profiler", may: []string{"perfmodel", "planner", "profiler"}},
	{dir: "scheduler", may: []string{"perfmodel", "planner", "scheduler"}},
	{dir: "datasets", may: []string{"perfmodel/spec", "datasets"}, root: true},
	{dir: "bench", may: []string{"perfmodel", "planner", "profiler", "scheduler", "datasets", "bench", "cmd/experiment"}, root: true},
	{dir: "cmd", may: []string{"perfmodel", "planner", "profiler", "scheduler", "datasets", "bench/accuracy", "bench/scheduling", "cmd"}, root: true},
}

// goPackage is what the go command says about a package.
type goPackage struct {
	ImportPath, Dir                             string
	GoFiles, Imports, TestImports, XTestImports []string
}

// brokenArrow says why the package at dir, relative to the module, may not
// import path, or "". Tests obey the arrows too, except for libraries outside
// the module.
func brokenArrow(dir, path string, test bool) string {
	f, ok := floorOf(dir)
	if !ok {
		return fmt.Sprintf("%s is on no floor: add it to floors", dir)
	}
	target, inside := strings.CutPrefix(path, module+"/")
	if !inside {
		if library := strings.Contains(strings.Split(path, "/")[0], "."); library && f.std && !test {
			return fmt.Sprintf("%s imports %s: only the standard library is allowed", dir, path)
		}
		return ""
	}
	if !slices.ContainsFunc(f.may, func(d string) bool { return within(target, d) }) {
		return fmt.Sprintf("%s imports %s: %s may import %s only", dir, target, f.dir, strings.Join(f.may, ", "))
	}
	below := dir == f.dir && within(target, dir) && target != dir
	if below && !f.root && !test && !within(target, "perfmodel/spec") {
		return fmt.Sprintf("%s imports %s: a package at the top of its floor is imported by those below it", dir, target)
	}
	return ""
}

// floorOf returns the floor with the longest dir that holds dir.
func floorOf(dir string) (floor, bool) {
	var best floor
	for _, f := range floors {
		if within(dir, f.dir) && len(f.dir) > len(best.dir) {
			best = f
		}
	}
	return best, best.dir != ""
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func TestArrows(t *testing.T) {
	for _, p := range modulePackages(t) {
		dir := strings.TrimPrefix(p.ImportPath, module+"/")
		check := func(imports []string, test bool) {
			for _, path := range imports {
				if why := brokenArrow(dir, path, test); why != "" {
					t.Error(why)
				}
			}
		}
		check(p.Imports, false)
		check(p.TestImports, true)
		check(p.XTestImports, true)
	}
}

// TestArrowsAreSeenBroken shows the checker what it must object to, and what
// it must not.
func TestArrowsAreSeenBroken(t *testing.T) {
	for _, c := range []struct {
		dir, imports string
		test, bad    bool
	}{
		{"perfmodel/spec", "github.com/google/go-cmp/cmp", false, true},
		{"perfmodel/spec", "github.com/google/go-cmp/cmp", true, false},
		{"perfmodel/spec/spectest", "github.com/google/go-cmp/cmp", false, false},
		{"perfmodel/spec/named", "github.com/google/go-cmp/cmp", false, true},
		{"perfmodel/spec", module + "/perfmodel", false, true},
		{"perfmodel/spec", "encoding/json", false, false},
		{"perfmodel", module + "/perfmodel/spec", false, false},
		{"perfmodel", module + "/perfmodel/family", false, true},
		{"perfmodel/family", module + "/planner", false, true},
		{"perfmodel/family", module + "/planner", true, true},
		{"perfmodel/measured", module + "/datasets/catalog", false, true},
		{"perfmodel/registry", module + "/profiler/store", false, true},
		{"planner", module + "/perfmodel/memory", false, false},
		{"planner", module + "/scheduler", false, true},
		{"planner", module + "/profiler", false, true},
		{"planner", module + "/planner/remote", false, true},
		{"profiler/store", module + "/scheduler/sim", false, true},
		{"profiler/store", module + "/datasets", false, true},
		{"scheduler", module + "/scheduler/sim", false, true},
		{"scheduler/sim", module + "/scheduler", false, false},
		{"scheduler/policy", module + "/cmd/pacer", false, true},
		{"scheduler/policy", module + "/datasets/catalog", true, true},
		{"datasets", module + "/perfmodel/spec", false, false},
		{"datasets", module + "/datasets/catalog", false, false},
		{"datasets", module + "/perfmodel", false, true},
		{"datasets/catalog", module + "/planner", false, true},
		{"bench", module + "/datasets", false, false},
		{"bench", module + "/cmd/pacer", false, true},
		{"bench/scale", module + "/cmd/experiment", false, false},
		{"bench/scale", module + "/cmd/internal/query", false, true},
		{"cmd/pacer", module + "/datasets/catalog", false, false},
		{"cmd/pacer", module + "/bench/accuracy", false, false},
		{"planner", module + "/bench/accuracy", false, true},
		{"elsewhere", "fmt", false, true},
	} {
		if why := brokenArrow(c.dir, c.imports, c.test); (why != "") != c.bad {
			t.Errorf("%s importing %s (test %v): %q", c.dir, c.imports, c.test, why)
		}
	}
}

// modulePackages lists the module's packages.
func modulePackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", module+"/...")
	cmd.Dir = moduleDir(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var list []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 5 {
		t.Fatalf("go list finds %d packages", len(list))
	}
	return list
}

// moduleDir returns the directory of go.mod.
func moduleDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}
