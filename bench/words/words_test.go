package main

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	for _, c := range []struct {
		file, content string
		want          []string // banned, by line
	}{
		{"a.go", "// Package a: jobs who wait.\npackage a\n", []string{"who"}},
		{"a.go", "// Package a: 8 rows, of\n// which 2 fit.\npackage a\n", []string{"of which"}},
		{"a.go", "// Package a is for users who wait.\npackage a\n", nil},
		{"a.go", "package a\n\nvar x = \"tries it in vain\"\n", []string{"in vain"}},
		{"a_test.go", "package a\n\nvar x = \"tries it in vain\"\n", nil},
		{"a.go", "package a\n\nfunc newRoster() {}\n", []string{"name newRoster"}},
		{"a.go", "package a\n\nfunc f() { for {\n\tdesk := 1; _ = desk } }\n", []string{"name desk"}},
		{"a.md", "# Jobs\n\nNobody waits, `who` does.\n\n```\nwho\n```\n\n    who\n", []string{"Nobody"}},
		{"a.py", "x = 1  # is asked for\n\"\"\"Returns the row whose\nkey it is.\"\"\"\n", []string{"is asked", "whose"}},
		{"a.sh", "#!/bin/bash\n# as many as\n# there are\necho who\n", []string{"as many as there are"}},
		{"a.yaml", "key: value # a job waits in vain\n", []string{"in vain"}},
		{"a/b.yml", "# a job waits in vain\nin vain: in vain\n", []string{"in vain"}},
		{"a/Makefile", "job: # a job waits in vain\n\techo in vain\n", []string{"in vain"}},
		{"a.txt", "who", nil},
	} {
		found, err := findAll(func(string) ([]byte, error) { return []byte(c.content), nil }, []string{c.file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.banned)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: found %q, want %q", c.content, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	found, err := findAll(func(string) ([]byte, error) {
		return []byte("package a\n\n// A row, of\n// which two fit, and a job who waits.\n"), nil
	}, []string{"d/a.go"}, nil)
	if err != nil || len(found) != 2 || found[0].line != 3 || found[1].line != 4 {
		t.Errorf("%v, %v, want findings on lines 3 and 4", found, err)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"./...", "a/b.go", true},
		{"./a/...", "a/b/c.go", true},
		{"./a/...", "ab/c.go", false},
		{"./a", "a/b/c.go", false},
		{"a", "a/c.go", true},
		{"a/c.go", "a/c.go", true},
	} {
		if got := matches(c.pattern, c.file); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.file, got)
		}
	}
}
