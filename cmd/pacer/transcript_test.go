package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trainedStep is a line of testdata/slurm/train.py. Times are seconds: when the process began, and the end of the step.
type trainedStep struct {
	Step       int
	Loss       float64
	Plan       string
	Began, End float64
}

func trainedSteps(t *testing.T, dir string) (out []trainedStep) {
	b, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	if err != nil {
		return nil
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var s trainedStep
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		out = append(out, s)
	}
	return out
}

// sameTraining fails if a job repeated or skipped a step, or its loss differs from that of an uninterrupted run. It returns
// what each plan trained, and what the changes took.
func sameTraining(t *testing.T, got, want []trainedStep) string {
	t.Helper()
	var b strings.Builder
	first, differ := 0, 0.0
	for i, s := range got {
		d := math.Abs(s.Loss - want[i].Loss)
		if s.Step != i+1 || !(d <= 1e-4) {
			t.Fatalf("step %d: %+v, uninterrupted %+v", i+1, s, want[i])
		}
		differ = max(differ, d)
		if last := i == len(got)-1; last || got[i+1].Began != s.Began {
			fmt.Fprintf(&b, "steps %d to %d with %s, loss %.4f to %.4f\n", got[first].Step, s.Step, s.Plan, got[first].Loss, s.Loss)
			if !last {
				pause, start := got[i+1].End-s.End, got[i+1].End-got[i+1].Began
				fmt.Fprintf(&b, "  %.1f s until the next step: %.1f s from the start of Python on, %.1f s before\n", pause, start, pause-start)
			}
			first = i + 1
		}
	}
	fmt.Fprintf(&b, "no step repeated or skipped; losses differ from those of an uninterrupted run by at most %.1e\n", differ)
	return b.String()
}

// keepTranscript writes what was printed into a file of the directory PACER_TRANSCRIPTS, if it is set. Texts of hide become what
// follows them.
func keepTranscript(t *testing.T, name, text string, hide ...string) {
	t.Helper()
	dir := os.Getenv("PACER_TRANSCRIPTS")
	if dir == "" {
		t.Log(text)
		return
	}
	writeFile(t, filepath.Join(dir, name), strings.NewReplacer(hide...).Replace(text))
}
