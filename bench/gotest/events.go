package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// An event is a line of go test -json: see go doc test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	Elapsed    float64 // s
}

// report prints packages and failures as they end, and collects skipped tests.
type report struct {
	w       io.Writer
	output  map[string][]string // by package and test, until it ends
	skipped []skip
}

type skip struct{ pkg, test, reason string }

func newReport(w io.Writer) *report { return &report{w: w, output: map[string][]string{}} }

func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		text, err := lines.ReadBytes('\n')
		if len(text) > 0 {
			var e event
			if json.Unmarshal(text, &e) != nil {
				fmt.Fprintf(r.w, "%s", text) // not an event
			} else {
				r.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
		return
	case "build-output":
		fmt.Fprint(r.w, e.Output)
		return
	case "fail":
		r.print(r.output[key])
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, skip{e.Package, e.Test, reasonOf(r.output[key])})
		}
	case "pass":
	default:
		return
	}
	if e.Test == "" && e.Action != "fail" {
		r.printPackage(r.output[key])
	}
	delete(r.output, key)
}

// print writes the output of a failed test or package.
func (r *report) print(lines []string) {
	for _, l := range lines {
		if !strings.HasPrefix(l, "=== ") {
			fmt.Fprint(r.w, l)
		}
	}
}

// printPackage writes the line of a package that passed, and benchmarks.
func (r *report) printPackage(lines []string) {
	for _, l := range lines {
		if strings.HasPrefix(l, "ok ") || strings.HasPrefix(l, "Benchmark") {
			fmt.Fprint(r.w, l)
		}
	}
}

var place = regexp.MustCompile(`^\s*[^\s:]+\.go:[0-9]+: `)

// reasonOf is the last line that a skipped test printed.
func reasonOf(lines []string) string {
	for _, l := range slices.Backward(lines) {
		if at := place.FindString(l); at != "" {
			return strings.TrimSpace(l[len(at):])
		}
	}
	return "no reason given"
}

// printSkips counts skipped tests by reason, or lists each.
func (r *report) printSkips(each bool) {
	if len(r.skipped) == 0 {
		return
	}
	if each {
		slices.SortFunc(r.skipped, func(a, b skip) int {
			return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
		})
		for _, s := range r.skipped {
			fmt.Fprintf(r.w, "skipped: %s %s: %s\n", s.pkg, s.test, s.reason)
		}
		return
	}
	counts := map[string]int{}
	for _, s := range r.skipped {
		counts[s.reason]++
	}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(r.w, "skipped: %d: %s\n", counts[reason], reason)
	}
}
