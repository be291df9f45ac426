package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// topLevel is everything the root of the tree may hold.
var topLevel = []string{
	".ci", ".editorconfig", ".githooks", ".github", ".gitignore", ".golangci.yml", "LICENSE", "Makefile", "README.md", "go.mod", "go.sum",
	"bench", "cmd", "datasets", "docs", "perfmodel", "planner", "profiler", "scheduler",
}

// vagueNames are file names that do not say what is in the file.
var vagueNames = []string{"common", "helper", "helpers", "misc", "types", "util", "utils"}

// treeFiles lists the files under version control: what a user leaves lying in
// a clone is not the tree.
func treeFiles(t *testing.T) []string {
	t.Helper()
	root := moduleDir(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		spectest.Lacks(t, "not a git checkout")
	}
	cmd := exec.Command("git", "ls-files", "--cached")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	return strings.Fields(string(out))
}

func TestTreeTopLevel(t *testing.T) {
	allowed := map[string]bool{}
	for _, name := range topLevel {
		allowed[name] = true
	}
	for _, file := range treeFiles(t) {
		if top, _, _ := strings.Cut(file, "/"); !allowed[top] {
			t.Errorf("%s: %s is not one of %s", file, top, strings.Join(topLevel, " "))
		}
	}
}

func TestTreeNames(t *testing.T) {
	for _, file := range treeFiles(t) {
		name, isGo := strings.CutSuffix(filepath.Base(file), ".go")
		name = strings.TrimSuffix(name, "_test")
		for _, vague := range vagueNames {
			if isGo && name == vague {
				t.Errorf("%s: name the file for the thing in it", file)
			}
		}
	}
}

// TestTreeSizes: files are short. The limit of tests is higher, as a table of cases is long.
func TestTreeSizes(t *testing.T) {
	for _, file := range treeFiles(t) {
		most := 400
		switch {
		case !strings.HasSuffix(file, ".go"), strings.HasSuffix(file, ".pb.go"): // these are generated
			continue
		case strings.HasSuffix(file, "_test.go"):
			most = 600
		case filepath.Base(file) == "doc.go":
			most = 40
		}
		text, err := os.ReadFile(filepath.Join(moduleDir(t), file))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, want at most %d", file, n, most)
		}
	}
}

// TestTreeDocs: every package explains itself in doc.go, and names a file to start with if it has more than three.
func TestTreeDocs(t *testing.T) {
	for _, p := range modulePackages(t) {
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, "doc.go"), nil, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", p.ImportPath, err)
			continue
		}
		if why := badDoc(file); why != "" {
			t.Errorf("%s/doc.go: %s", p.ImportPath, why)
		}
		named := goFile.FindAllString(example.ReplaceAllString(file.Doc.Text(), ""), -1)
		if len(named) == 0 && len(p.GoFiles) > 3 {
			t.Errorf("%s/doc.go names none of %d files to start with", p.ImportPath, len(p.GoFiles))
		}
		for _, name := range named {
			_, here := os.Stat(filepath.Join(p.Dir, name))
			if _, inModule := os.Stat(filepath.Join(moduleDir(t), name)); here != nil && inModule != nil {
				t.Errorf("%s/doc.go names %s, which does not exist", p.ImportPath, name)
			}
		}
	}
}

var (
	goFile  = regexp.MustCompile(`[\w./]+\.go\b`)
	example = regexp.MustCompile(`(?m)^\t.*$`) // an indented line
)

// badDoc says what is wrong with a package comment, or "".
func badDoc(f *ast.File) string {
	text := f.Doc.Text()
	switch {
	case text == "":
		return "no package comment"
	case f.Name.Name == "main" && !strings.HasPrefix(text, "Command "):
		return "the comment of a command begins with Command NAME"
	case f.Name.Name != "main" && !strings.HasPrefix(text, "Package "+f.Name.Name+" "):
		return "the comment begins with Package " + f.Name.Name
	case len(f.Decls) > 0:
		return "holds more than the package comment"
	}
	return ""
}
