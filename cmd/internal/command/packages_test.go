package command

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// errorPackages is the packages with a text that begins with "NAME: ", their own name.
func TestErrorPackages(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range []string{"cmd", "datasets", "perfmodel", "planner", "profiler", "scheduler", "bench/accuracy"} {
		err := filepath.WalkDir(filepath.Join("../../..", dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil && namesItself(file) {
				found[file.Name.Name] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range verbs {
		delete(found, verb)
	}
	if want := slices.Sorted(maps.Keys(found)); !slices.Equal(errorPackages, want) {
		t.Errorf("errorPackages should be:\n%s", strings.Join(want, " "))
	}
}

// verbs are packages with the name of their verb, which stays in messages.
var verbs = []string{"calibrate", "learn", "plan", "profile", "schedule", "serve", "simulate"}

// namesItself reports whether a text in a file begins with the name of its package and a colon,
// or it is given as the package of a YAML file or of a set of names.
func namesItself(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			found = found || n.Kind == token.STRING && err == nil && strings.HasPrefix(text, f.Name.Name+": ")
		case *ast.CallExpr:
			found = found || len(n.Args) > 0 && strings.HasPrefix(types.ExprString(n.Fun), "named.NewSet[") &&
				types.ExprString(n.Args[0]) == strconv.Quote(f.Name.Name)
		case *ast.KeyValueExpr:
			found = found || types.ExprString(n.Key) == "Package" && types.ExprString(n.Value) == strconv.Quote(f.Name.Name)
		}
		return !found
	})
	return found
}

func TestPlain(t *testing.T) {
	err := errors.New("simulate: policy: dl2: a.bin: nn: 49 bytes are not a network: measured here")
	if got, want := plain(err), "simulate: dl2: a.bin: 49 bytes are not a network: measured here"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
