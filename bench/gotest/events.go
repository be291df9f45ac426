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

	"github.com/pacer-ml/pacer/perfmodel/spec"
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
	verbose bool                // print the output of every test
	output  map[string][]string // by package and test, until it ends
	running map[string][]string // by package: tests with output that have not ended, in order of their first output
	skipped []skip
}

type skip struct{ pkg, test, reason string }

func newReport(w io.Writer, verbose bool) *report {
	return &report{w: w, verbose: verbose, output: map[string][]string{}, running: map[string][]string{}}
}

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
		if e.Test != "" && r.output[key] == nil {
			r.running[e.Package] = append(r.running[e.Package], e.Test)
		}
		r.output[key] = append(r.output[key], e.Output)
		return
	case "build-output":
		fmt.Fprint(r.w, e.Output)
		return
	case "fail", "pass", "skip":
	default:
		return
	}
	switch {
	case e.Test == "" && e.Action == "fail":
		r.printRunning(e.Package)
		r.print(r.output[key])
	case r.verbose || e.Action == "fail":
		r.print(r.output[key])
	case e.Test == "":
		r.printPackage(r.output[key])
	}
	if e.Action == "skip" && e.Test != "" {
		r.skipped = append(r.skipped, skip{e.Package, e.Test, reasonOf(r.output[key])})
	}
	delete(r.output, key)
	r.running[e.Package] = slices.DeleteFunc(r.running[e.Package], func(test string) bool { return test == e.Test })
}

// printRunning writes the names and output of tests that have not ended when their package fails.
// A panic, a crash, os.Exit and a timeout end a package in the middle of a test.
func (r *report) printRunning(pkg string) {
	for _, test := range r.running[pkg] {
		key := pkg + " " + test
		fmt.Fprintf(r.w, "--- NOT ENDED: %s\n", test)
		r.print(r.output[key])
		delete(r.output, key)
	}
	delete(r.running, pkg)
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
		fmt.Fprintf(r.w, "skipped: %s: %s\n", spec.Count(counts[reason], "test"), reason)
	}
}
