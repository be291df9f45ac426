package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// A finding is a banned construction and its place.
type finding struct {
	file   string
	line   int
	banned string
	say    string
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns 0 without findings, 1 with some or if it failed, 2 for wrong usage.
func run(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("words", flag.ContinueOnError)
	f.SetOutput(stderr)
	counts := f.Bool("counts", false, "print the number of findings of each directory")
	if err := f.Parse(args); err != nil {
		return 2
	}
	files, err := treeFiles()
	if err != nil {
		fmt.Fprintln(stderr, "words:", err)
		return 1
	}
	found, err := findAll(os.ReadFile, files, f.Args())
	if err != nil {
		fmt.Fprintln(stderr, "words:", err)
		return 1
	}
	if *counts {
		return printCounts(stdout, group(found))
	}
	return printFindings(stdout, found)
}

// treeFiles lists the files of the repository, outside testdata.
func treeFiles() ([]string, error) {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []string
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		if _, err := os.Stat(file); err != nil || skipped(file) {
			continue
		}
		files = append(files, file)
	}
	return files, nil
}

func skipped(file string) bool {
	return strings.Contains("/"+file, "/testdata/") || strings.HasPrefix(file, "bench/compare/inputs/") || file == "bench/words/rules.go" ||
		strings.HasPrefix(file, "bench/words/words_test")
}

// findAll reads files that match a pattern, such as ./docs or ./scheduler/..., all
// files where there is none.
func findAll(read func(string) ([]byte, error), files, patterns []string) ([]finding, error) {
	var out []finding
	for _, file := range files {
		if len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool { return matches(p, file) }) {
			continue
		}
		content, err := read(file)
		if err != nil {
			return nil, err
		}
		texts, err := extract(file, content)
		if err != nil {
			return nil, err
		}
		for _, t := range texts {
			if t.name {
				out = append(out, findInName(t)...)
			} else {
				out = append(out, findIn(t)...)
			}
		}
	}
	slices.SortFunc(out, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.banned, b.banned))
	})
	return slices.Compact(out), nil
}

func matches(pattern, file string) bool {
	pattern = path.Clean(pattern)
	if dir, below := strings.CutSuffix(pattern, "..."); below {
		dir = strings.TrimSuffix(dir, "/")
		return dir == "" || dir == "." || strings.HasPrefix(file, dir+"/")
	}
	return file == pattern || path.Dir(file) == pattern
}

func group(found []finding) map[string][]finding {
	byDir := map[string][]finding{}
	for _, f := range found {
		byDir[path.Dir(f.file)] = append(byDir[path.Dir(f.file)], f)
	}
	return byDir
}

func printFindings(w io.Writer, found []finding) int {
	for _, f := range found {
		fmt.Fprintf(w, "%s:%d: %s: %s\n", f.file, f.line, f.banned, f.say)
	}
	if len(found) > 0 {
		return 1
	}
	return 0
}

func printCounts(w io.Writer, byDir map[string][]finding) int {
	total := 0
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		fmt.Fprintf(w, "%5d %s\n", len(byDir[dir]), dir)
		total += len(byDir[dir])
	}
	fmt.Fprintf(w, "%5d in all\n", total)
	return 0
}
