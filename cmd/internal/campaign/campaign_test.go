package campaign

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/runner"
)

// On a terminal the progress line has the points, and lines of points that are not ok stay.
func TestProgressOnTerminal(t *testing.T) {
	camp, s := tinyCampaign(t)
	points, _, err := s.points(camp)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := &Display{w: &out, camp: camp, terminal: true}
	step := profiler.Step{Point: points[0], Why: "first of gpt-a", Seconds: 9}
	ok := spec.Measurement{Config: points[0].Config, Outcome: spec.OK, StepSec: []float64{.10, .11, .12, .10, .11, .12, .11},
		Env: map[string]string{profiler.EnvWall: "8.5", profiler.EnvThrottle: "power", profiler.EnvHalfWidth: "0.091"}}
	oom := spec.Measurement{Config: points[1].Config, Outcome: spec.OOM, Reason: "needs 90 GiB of 80\nand more"}
	for i, c := range []struct {
		event profiler.Event
		want  string
	}{
		{profiler.Event{State: profiler.State{Points: 4, ETASec: 36}, Next: &step},
			"0 of 4 points, 0 device-hours so far, 36.0 s to go | " + PointName(points[0].Config) + ": 0 s of about 9.0 s"},
		{profiler.Event{State: profiler.State{Points: 4, Done: 1, DeviceSec: 8.5}, Last: &ok},
			"1 of 4 points, 0.0024 device-hours so far | last ok 0.110 s ±9.1 %, throttled"},
		{profiler.Event{State: profiler.State{Points: 4, Done: 2, Skipped: 1}, Last: &oom},
			"2 of 3 points, 0 device-hours so far | last oom: needs 90 GiB of 80"},
	} {
		p.Event(c.event)
		if got := p.status(); got != c.want {
			t.Errorf("event %d: %q, want %q", i, got, c.want)
		}
	}
	p.Finish()
	want := "profile tiny: 2 of 3 points: gpt-a dp=1,tp=1,pp=1,mb=2,ga=1,precision=bf16 oom: needs 90 GiB of 80 (held 0.0 s, 0 device-hours so far)\n"
	if out.String() != want {
		t.Errorf("lines %q, want %q", out.String(), want)
	}
}

func TestHalfWidth(t *testing.T) {
	for text, want := range map[string]float64{"0.015": 0.015, "": 0, "0": 0, "NaN": 0, "x": 0} {
		m := spec.Measurement{Env: map[string]string{profiler.EnvHalfWidth: text}}
		if half, ok := HalfWidth(m); ok != (want > 0) || ok && half != want {
			t.Errorf("%q: %g, %t", text, half, ok)
		}
	}
}

// TestTallyDoubted: rows in doubt are counted apart.
func TestTallyDoubted(t *testing.T) {
	m := spec.Measurement{Outcome: spec.OK, StepSec: []float64{1}, Doubt: "throttled"}
	clean := m
	clean.Doubt = ""
	tally := TallyRun("c", "1", []spec.Measurement{m, clean})
	if n := tally.Models[0]; n.Doubted != 1 || n.Outcomes.OK != 2 {
		t.Errorf("%+v, want 2 ok, 1 of them in doubt", n)
	}
	if said := lastResult(m); !strings.HasSuffix(said, "in doubt") {
		t.Error(said)
	}
}

func TestGroupRejected(t *testing.T) {
	reject := func(model, why, asked string) profiler.Rejected {
		return profiler.Rejected{Config: spec.Config{Model: spec.Model{Name: model}, Plan: spec.Plan{}.Normal()}, Why: why, UnusedValue: asked}
	}
	got := GroupRejected([]profiler.Rejected{
		reject("a", "tp=2 does not divide 5 heads", ""),
		reject("b-7", "b-7: tp=4 does not divide 5 heads", ""),
		reject("a", "tp=8 does not divide 5 heads", ""),
		reject("a", "zero=1 needs dp > 1", ""),
		reject("a", "needs 8 devices", "shape=8"),
	})
	const plan = " dp=1,tp=1,pp=1,mb=1,ga=1"
	want := []RejectedGroup{
		{Why: "needs 8 devices", Count: 1, Example: "a" + plan, Unused: "shape=8"},
		{Why: "tp=N does not divide 5 heads", Count: 3, Example: "a" + plan},
		{Why: "zero=1 needs dp > 1", Count: 1, Example: "a" + plan},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTallyRuns(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	row := func(campaign, label, model string, o spec.Outcome, wall string, env ...string) spec.Measurement {
		m := spec.Measurement{Outcome: o, Source: profiler.SourcePrefix + campaign, At: at, Env: map[string]string{profiler.EnvRun: label, profiler.EnvWall: wall}}
		m.Config.Model.Name, m.Config.Accelerator.Name, m.Config.Plan = model, "acc", spec.Plan{DP: 2}.Normal()
		for _, k := range env {
			m.Env[k] = "yes"
		}
		at = at.Add(time.Minute)
		return m
	}
	runs := TallyRuns([]spec.Measurement{
		row("c", "2", "m", spec.OK, "36"),
		row("c", "1", "n", spec.OOM, "18"),
		row("c", "1", "m", spec.OK, "1800", profiler.EnvNoise, profiler.EnvShared),
		row("b", "1", "m", spec.Timeout, "nonsense"),
		row("c", "1", "m", spec.Failed, "-5", profiler.EnvThrottle),
	})
	if len(runs) != 3 || runs[0].Campaign != "b" || runs[1].Label != "1" || runs[2].Label != "2" {
		t.Fatalf("runs %+v", runs)
	}
	r := runs[1]
	if r.Points != 3 || r.Outcomes != (Outcomes{OK: 1, OOM: 1, Failed: 1}) || r.HeldSec != 1818 || r.DeviceHours != 1.01 ||
		!r.First.Equal(time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC)) || r.Last.Sub(r.First) != 3*time.Minute {
		t.Errorf("run c/1: %+v", r)
	}
	if want := (ModelTally{Model: "m", Accelerator: "acc", Points: 2, Outcomes: Outcomes{OK: 1, Failed: 1}, Noisy: 1, Flagged: 2,
		DeviceHours: 1, HeldSec: 1800}); r.Models[0] != want {
		t.Errorf("model m of it: %+v, want %+v", r.Models[0], want)
	}
}

// tinyCampaign is one that a synthetic runner measures, and its Setup.
func tinyCampaign(t *testing.T) (profiler.Campaign, Setup) {
	t.Helper()
	text := `
name: tiny
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
space: {micro_batch: [1, 2, 4, 8]}
choose: grid
`
	camp, err := profiler.ReadCampaign("tiny.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := assumed("h100", 1)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := query.Analytic()
	if err != nil {
		t.Fatal(err)
	}
	return camp, Setup{Machine: m, Runner: &runner.Synthetic{Truth: truth}, Assumed: true}
}
