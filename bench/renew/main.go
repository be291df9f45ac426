package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Directories, below the root of the repository.
const (
	pagesDir   = "docs/benchmarks"
	resultsDir = "bench/results"
)

func main() {
	if err := run(".", os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "renew:", err)
		os.Exit(1)
	}
}

func run(root string, args []string, in io.Reader) error {
	switch len(args) {
	case 0:
	case 1:
		if err := store(root, args[0], in); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	default:
		return fmt.Errorf("%d arguments, want at most one: the name of a table", len(args))
	}
	pages, err := filepath.Glob(filepath.Join(root, pagesDir, "*.md"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		was, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		now, err := render(root, was)
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if bytes.Equal(was, now) {
			continue
		}
		if err := os.WriteFile(page, now, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// store writes a Markdown table as the CSV file of a result.
func store(root, name string, in io.Reader) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	t, err := parseMarkdown(string(text))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.split().writeCSV(&b); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, resultsDir, name+".csv"), b.Bytes(), 0o644)
}

var place = regexp.MustCompile(`(?m)^<!-- ([a-z0-9-]+) -->$`)

// names returns the names of the tables on a page.
func names(page []byte) (out []string) {
	for _, m := range place.FindAllSubmatch(page, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// render returns a page with every table made from its file.
func render(root string, page []byte) ([]byte, error) {
	var faults []error
	for _, name := range names(page) {
		t, err := readCSV(filepath.Join(root, resultsDir, name+".csv"))
		if err == nil {
			page, err = report.Splice(page, []byte(t.join().markdown()), name)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	return page, errors.Join(faults...)
}
