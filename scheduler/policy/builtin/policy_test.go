package builtin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/loss"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// Every policy conforms with its default options, and with each option at another value.
func TestConformance(t *testing.T) {
	for _, info := range builtin.Policies.Placing(false) {
		t.Run(info.Name, func(t *testing.T) {
			with := func(options map[string]string) schedulertest.Maker {
				return func(o scheduler.Oracle) (scheduler.Policy, error) {
					return builtin.Policies.New(policy.Spec{Name: info.Name, Options: options},
						policy.Deps{Oracle: o, Losses: &loss.Synthetic{Steps: submittedSteps, Sigma: 0.02}, Audit: true})
				}
			}
			schedulertest.Conformance(t, with(nil))
			schedulertest.ConformanceOptions(t, info.Options, with)
		})
	}
}

// Every policy for jobs with parameter servers conforms.
func TestConformanceParamServer(t *testing.T) {
	for _, info := range builtin.Policies.Placing(true) {
		if info.Name == "dl2" {
			continue // what comes with Pacer was trained for jobs without: TestDL2Conforms
		}
		t.Run(info.Name, func(t *testing.T) {
			schedulertest.ConformanceParamServer(t, func(o scheduler.Oracle) (scheduler.Policy, error) {
				return builtin.Policies.New(policy.Spec{Name: info.Name}, policy.Deps{
					Oracle: o, Servers: o.(scheduler.ServerSpace), Losses: &loss.Synthetic{Steps: submittedSteps, Sigma: 0.02},
				})
			})
		})
	}
}

// TestParamServerOnly checks the errors of policies that do not support a job.
func TestParamServerOnly(t *testing.T) {
	w := &schedulertest.World{}
	_, err := builtin.Policies.New(policy.Spec{Name: "las"}, policy.Deps{Servers: w})
	if err == nil || !strings.Contains(err.Error(), "las places no parameter servers; those that do: dl2, drf, fifo, optimus, optimus-oracle, srtf") {
		t.Errorf("las with parameter servers: %v", err)
	}
	_, err = builtin.Policies.New(policy.Spec{Name: "tetris"}, policy.Deps{})
	if err == nil || !strings.Contains(err.Error(), "tetris is only for jobs with parameter servers") {
		t.Errorf("tetris without: %v", err)
	}
	p, err := builtin.Policies.New(policy.Spec{Name: "drf"}, policy.Deps{Servers: w})
	if err != nil {
		t.Fatal(err)
	}
	s := scheduler.NewSnapshot(0, schedulertest.Nodes(1, 4), []*scheduler.JobState{{Job: &spec.Job{ID: "plain", Devices: 1}}})
	if _, err := p.Decide(t.Context(), s); err == nil || !strings.Contains(err.Error(), "job plain has no parameter servers") {
		t.Errorf("drf of a job without: %v", err)
	}
}

// submittedSteps is a truth with the steps that jobs are submitted with.
func submittedSteps(_ context.Context, j *spec.Job) (float64, error) { return j.Steps, nil }

func TestScenarios(t *testing.T) {
	schedulertest.Scenarios(t, "testdata", func(s string, o scheduler.Oracle) (scheduler.Policy, error) {
		specs, err := builtin.Policies.Parse(s)
		if err != nil {
			return nil, err
		}
		if len(specs) > 1 {
			return nil, fmt.Errorf("policy=%s: want one policy", s)
		}
		return builtin.Policies.New(specs[0], policy.Deps{Oracle: o})
	})
}

// Options that conform alone also conform together. The limit and the quantum are short, so
// that jobs of the drawn cases reach them.
func TestConformanceCombined(t *testing.T) {
	schedulertest.Conformance(t, func(o scheduler.Oracle) (scheduler.Policy, error) {
		return builtin.Policies.New(policy.Spec{Name: "tiresias", Options: map[string]string{"limits": "600", "promote": "0.5", "quantum": "60"}}, policy.Deps{Oracle: o})
	})
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"fifo", "fifo"},
		{"fifo,fifo-backfill,rubick", "fifo fifo-backfill rubick"},
		{"rubick:price=0.2:shrink=false", "rubick:price=0.2:shrink=false"},
		{"rubick:shrink:budget=0.5", "rubick:budget=0.5:shrink"},
		{" fifo , rubick", "fifo rubick"},
		{"fifos", `error: policy: unknown policy "fifos", there are: fifo, `},
		{"backfill", `error: policy: unknown policy "backfill", there are: fifo-backfill, `},
		{"quantum", `error: policy: unknown policy "quantum", there are: `},
		{"", `error: policy: unknown policy "", there are: `},
		{"rubick:prise=1", `error: policy: rubick has no option "prise", there are: price, gate, shrink, grow, budget, starve`},
		{"fifo:x", `error: policy: fifo has no options, not "x"`},
		{"las:quantum=60,las,las:quantum=60", "error: policy: las:quantum=60 is given twice"},
		{"rubick:gate=1:gate=2", `error: policy: rubick: option gate is given twice`},
	} {
		specs, err := builtin.Policies.Parse(c.in)
		got := ""
		for _, s := range specs {
			got += " " + s.String()
		}
		if got = strings.TrimSpace(got); err != nil {
			got = "error: " + err.Error()
		}
		if got != c.want && !(strings.HasSuffix(c.want, " ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("Parse(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestNewRefusesValues(t *testing.T) {
	for _, in := range []string{"rubick:price=cheap", "rubick:price=-1", "rubick:budget=NaN", "rubick:shrink=maybe",
		"las:quantum=-1", "sia:p=0", "sia:wait=0.5", "srtf:backfill=perhaps", "tiresias:limits=7/3", "tiresias:limits=NaN", "tiresias:limits=", "priority:aging=-1",
		"gittins:limits=3/2", "gittins:learn=a-lot", "gittins:quantum=-1", "gittins:history=missing.csv",
		"themis:f=2", "themis:lease=-1",
		"pollux:p=1", "pollux:population=0", "pollux:stall=1.5", "elasticflow:slot=0", "elasticflow:best-effort-first=maybe",
		"synergy:order=lifo", "synergy:saturation=0.2", "synergy:round=-1", "fgd:backfill=perhaps",
		"gavel-las:parts=0", "gavel-las:parts=2:sharing",
		"synth:policies=synth", "synth:policies=nonesuch", "synth:policies=gittins+history=h.csv", "synth:policies=las+quantum=-1",
		"synth:admissions=nonesuch", "synth:placements=diagonal", "synth:objective=best", "synth:hysteresis=2", "synth:every=-1"} {
		specs, err := builtin.Policies.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := builtin.Policies.New(specs[0], policy.Deps{}); err == nil {
			t.Errorf("%s was accepted", in)
		}
	}
}
