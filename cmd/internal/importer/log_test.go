package importer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
)

// write writes a file below a new directory and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	spectest.WriteFile(t, path, []byte(text), 0o600)
	return path
}

// TestLog: the row has the steps after the warm-up, the configuration of the file, and the memory that the log has.
func TestLog(t *testing.T) {
	megatron := write(t, "run.log", ` iteration        5/      15 | elapsed time per iteration (ms): 9310.4 | global batch size:    64 |
[Rank 0] (after 5 iterations) memory (MB) | allocated: 9000 | max allocated: 20000 | reserved: 21000 | max reserved: 23000
 iteration       10/      15 | elapsed time per iteration (ms): 1310.5 | global batch size:    64 |
 iteration       15/      15 | elapsed time per iteration (ms): 1312.5 | global batch size:    64 |
`)
	titan := write(t, "titan.log", "step:  1  loss: 8  memory: 10.00GiB(13%)  tps: 10\nstep:  2  loss: 8  memory: 40.00GiB(50%)  tps: 4,096\n")
	ended := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, file := range []string{megatron, titan} {
		if err := os.Chtimes(file, ended, ended); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		log, run string
		steps    []float64
		peak     float64
		kind     string
	}{
		{megatron, "model: Llama2-7B\naccelerator: H100\nplan: dp=8,mb=2,ga=4,zero=1\nsource: mine\n", []float64{1.3105, 1.3125}, 20000 << 20, "allocated"},
		// 8 samples of 4096 tokens on 2 devices at 4096 tokens/s of each are 4 s.
		{titan, "model: Llama2-7B\naccelerator: H100\nplan: dp=2,mb=4,zero=3\nseq: 4096\nwarmup_steps: 1\nsource: mine\nframework: torchtitan\n", []float64{4}, 40 << 30, "reserved"},
	} {
		m, err := readLog(c.log, write(t, "run.yaml", c.run))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.StepSec, c.steps) || m.Outcome != spec.OK || m.PeakBytes != c.peak || m.Env[spec.EnvMemKind] != c.kind {
			t.Errorf("%s: steps %v, %s, %g bytes %s", c.log, m.StepSec, m.Outcome, m.PeakBytes, m.Env[spec.EnvMemKind])
		}
		if m.Source != "mine" || m.Origin != filepath.ToSlash(c.log) || !m.At.Equal(ended) || m.Env[profiler.EnvTiming] == "" {
			t.Errorf("%s: source %s, origin %s, at %v, %v", c.log, m.Source, m.Origin, m.At, m.Env)
		}
		x := m.Config
		if x.Model.Name != "Llama2-7B" || x.Plan.Precision != spec.BF16 || x.Shape.Total() != x.Plan.Devices() || !(x.Link.IntraBps > 0) {
			t.Errorf("%s: %+v", c.log, x)
		}
	}
}

// TestLogRunErrors: faults of the description say file, line and value.
func TestLogRunErrors(t *testing.T) {
	log := write(t, "run.log", "completed step: 9, seconds: 1.5\n")
	for run, want := range map[string]string{
		"model: Llama2-7B\naccelerator: H100\n":                                "run.yaml:1:1: the run has no plan",
		"model: Llama2-7B\naccelerator: H100\nplan: dp=x\n":                    `run.yaml:3:7: plan: `,
		"model: nothing\naccelerator: H100\nplan: dp=1,mb=1\n":                 `"nothing"`,
		"model: Llama2-7B\naccelerator: H100\nplan: dp=1,mb=1\nformat: word\n": `run.yaml:4:9: `,
		"model: Llama2-7B\naccelerator: H100\nplan: dp=1,mb=1\nseq: 0\n":       `run.yaml:4:6: `,
		"model: Llama2-7B\naccelerator: H100\nplan: dp=1,mb=1\nsteps: 3\n":     `unknown key "steps"`,
		"model: Llama2-7B\naccelerator: H100\nplan: dp=4,mb=1\nshape: 2\n":     `run.yaml:1:1: `,
	} {
		if _, err := readLog(log, write(t, "run.yaml", run)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", run, err, want)
		}
	}
}
