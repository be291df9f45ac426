package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const killedStudy = `name: killed
cluster: 4x8
workloads: synthetic:jobs=300,per-hour=30
policies: [fifo, fifo-backfill]
loads: [0.5, 0.7, 0.9]
seeds: 6
`

var sweptLine = regexp.MustCompile(`runs: |(\d+) of them from before`)

// TestE2EKilledSweeps kills studies with SIGKILL at random moments and starts
// them again until they are done: what was said to be done is not run again, and
// the result is that of an undisturbed study. 3 studies, 100 with PACER_SOAK
// set.
func TestE2EKilledSweeps(t *testing.T) {
	rounds := 3
	if os.Getenv("PACER_SOAK") != "" {
		rounds = 100
	}
	pacer := selfAs(t, "pacer")
	file := filepath.Join(t.TempDir(), "study.yaml")
	spectest.WriteFile(t, file, []byte(killedStudy), 0o644)
	began := time.Now()
	want := sweepOnce(t, pacer, file, t.TempDir(), 0)
	whole := time.Since(began)
	r := rand.New(rand.NewPCG(5, 6))
	kills := 0
	for i := range rounds {
		dir, said := t.TempDir(), 0
		for range 3 {
			k := sweepOnce(t, pacer, file, dir, time.Duration((0.2+0.6*r.Float64())*float64(whole)))
			if said += k.ran; k.output == nil {
				kills++
			}
		}
		last := sweepOnce(t, pacer, file, dir, 0)
		if last.kept < said || last.kept+last.ran != want.ran {
			t.Errorf("study %d: %d runs were said to be done, %d were kept and %d run at last, of %d", i, said, last.kept, last.ran, want.ran)
		}
		if !bytes.Equal(last.output, want.output) {
			t.Errorf("study %d, interrupted, gives\n%s\nundisturbed\n%s", i, last.output, want.output)
		}
	}
	if kills < rounds/2 {
		t.Errorf("only %d studies were killed under way", kills)
	}
}

// swept is the outcome of one start of a study.
type swept struct {
	ran, kept int    // runs said to be done, and to be there from before
	output    []byte // nil if it was killed
}

// sweepOnce runs a study, killed after the given time; 0 = not.
func sweepOnce(t *testing.T, pacer, file, dir string, after time.Duration) (s swept) {
	t.Helper()
	cmd := exec.Command(pacer, "sweep", file, "--out", dir, "--output", "json")
	var out bytes.Buffer
	cmd.Stdout = &out
	lines := start(t, cmd)
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // SIGKILL; it may have ended
		defer timer.Stop()
	}
	for line := range lines {
		switch m := sweptLine.FindStringSubmatch(line); {
		case m == nil:
		case m[1] == "":
			s.ran++
		default:
			s.kept, _ = strconv.Atoi(m[1])
		}
	}
	if err := cmd.Wait(); err == nil {
		s.output = out.Bytes()
	} else if after == 0 {
		t.Fatal(err)
	}
	return s
}
