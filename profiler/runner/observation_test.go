//go:build linux

package runner

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/trainlog"
)

// TestObservation: all steps after the warm-up count, and what contradicts the configuration is said.
func TestObservation(t *testing.T) {
	lines := func(device, parameters string, steps int) string {
		sec := 0.5
		text := `{"event":"start","version":1,"world":1,"device":"` + device + `","parameters":` + parameters + "}\n"
		for i := 1; i <= steps; i++ {
			if i > 100 {
				sec = 0.75
			}
			text += `{"event":"step","n":` + number(float64(i)) + `,"sec":` + number(sec) + `,"end":` + number(float64(i)) + `,"calls":1,"backwards":1}` + "\n"
		}
		return text
	}
	log := &trainlog.Log{Format: trainlog.Megatron, GlobalBatch: 2, Lines: []trainlog.Line{{Step: 5, Sec: 9}, {Step: 10, Sec: 0.7}}}
	other := *log
	other.GlobalBatch = 5
	bare := &trainlog.Log{Format: trainlog.Trainer, Bare: true, Total: 60, Lines: []trainlog.Line{{Step: 5, Sec: 9}, {Step: 10, Sec: 0.25}}}
	config := tiny(1)
	params := number(config.Model.Params())
	device := map[bool]string{true: "cpu", false: "cuda"}
	own, foreign := device[config.Accelerator.IsCPU()], device[!config.Accelerator.IsCPU()]
	for _, c := range []struct {
		name, hook string
		log        *trainlog.Log
		exit       profiler.Exit
		outcome    spec.Outcome
		steps      int
		step       float64
		want       string // in the reason, the doubt or the warning
	}{
		{"hook", lines(own, params, 30), nil, profiler.Exit{}, spec.OK, 25, 0.5, ""},
		{"log", "", log, profiler.Exit{}, spec.OK, 1, 0.7, ""},
		{"bar alone", "", bare, profiler.Exit{}, spec.OK, 1, 0.25, "a progress bar, which may count something else"},
		{"bar of micro-batches", lines(own, params, 30), bare, profiler.Exit{}, spec.OK, 25, 0.5, ""},
		{"killed", lines(own, params, 30), nil, profiler.Exit{Code: -1, Signal: "killed"}, spec.OK, 25, 0.5, `ended by signal "killed"`},
		{"other batch", lines(own, params, 30), &other, profiler.Exit{}, spec.Failed, 0, 0, "has 5 samples per step"},
		{"other device", lines(foreign, params, 30), nil, profiler.Exit{}, spec.OK, 25, 0.5, "the program trains on " + foreign},
		{"other model", lines(own, number(9*config.Model.Params()), 30), nil, profiler.Exit{}, spec.OK, 25, 0.5, "the optimizer has "},
		{"other speed", lines(own, params, 200), nil, profiler.Exit{}, spec.OK, 195, 0.5, "took 0.5 s in the first half and 0.75 s in the second one"},
		{"accumulates", strings.ReplaceAll(lines(own, params, 30), `"backwards":1`, `"backwards":4`), nil, profiler.Exit{}, spec.OK, 25, 0.5, "a step has 4 backward passes, the plan has 1 micro-batch: is ga=1 right?"},
		{"two optimizers", strings.ReplaceAll(lines(own, params, 30), `"calls":1,"backwards":1`, `"calls":2,"backwards":2`), nil, profiler.Exit{}, spec.OK, 25, 0.5, ""},
		{"too short", lines(own, params, 5), nil, profiler.Exit{}, spec.Failed, 0, 0, "want more than the 5 of the warm-up"},
		{"nothing", "", nil, profiler.Exit{}, spec.Failed, 0, 0, "0 ranks stepped an optimizer"},
	} {
		dir := t.TempDir()
		if c.hook != "" {
			spectest.WriteFile(t, filepath.Join(dir, "rank0-1.jsonl"), []byte(c.hook), 0o600)
		}
		m := Observation{Config: config, WarmUp: 5, Hook: dir, Log: c.log, Exit: c.exit}.Measurement()
		said := m.Reason + m.Doubt + m.Env[profiler.EnvWarning]
		if m.Outcome != c.outcome || len(m.StepSec) != c.steps || !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s: %s, %d steps, %q; want %s, %d, %q", c.name, m.Outcome, len(m.StepSec), said, c.outcome, c.steps, c.want)
		}
		if len(m.StepSec) > 0 && m.StepSec[0] != c.step {
			t.Errorf("%s: step of %g s, want %g", c.name, m.StepSec[0], c.step)
		}
	}
}
