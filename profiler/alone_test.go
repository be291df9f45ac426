package profiler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// aloneCampaign reads a campaign with plans of up to 16 devices.
func aloneCampaign(t *testing.T, more string) Campaign {
	t.Helper()
	c, err := ReadCampaign("f.yaml", []byte(`name: a
models: [{name: m, kind: decoder, layers: 8, hidden: 64, ffn: 256, heads: 4, vocab: 100, seq_len: 16}]
space: {shapes: [1, 2, 8, 8+8], accumulation: [4], tp: [1, 2, 4], pp: [1, 2, 4], zero: [0, 1]`+more+"}\n"), testCatalog)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAlonePoints: plans for more devices than the machine has become a rank of each different stage, and all others stay
// whole. Without the option they are rejected.
func TestAlonePoints(t *testing.T) {
	m := cpuMachine(2)
	whole, rejected, err := aloneCampaign(t, "").Points(m)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(rejected, func(r Rejected) bool {
		return strings.Contains(r.Why, "this machine has 2") || strings.Contains(r.Why, "this machine is one")
	}) {
		t.Errorf("%+v: no plan is too large", rejected)
	}
	points, rejected, err := aloneCampaign(t, ", alone: true").Points(m)
	if err != nil {
		t.Fatal(err)
	}
	stages := map[spec.Plan][]int{}
	n := 0
	for _, p := range points {
		c := p.Config
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		if c.Alone() != (c.Plan.Devices() > 2) {
			t.Errorf("%s on %s: stage %d alone", c.Plan, c.Shape, c.AloneStage)
		}
		if !c.Alone() {
			n++
			continue
		}
		stages[c.Plan] = append(stages[c.Plan], c.AloneStage)
	}
	if n != len(whole) {
		t.Errorf("%d whole plans, want the %d without the option", n, len(whole))
	}
	for p, got := range stages {
		want := map[int][]int{1: {1}, 2: {1, 2}, 4: {1, 2, 4}}[p.PP]
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: stages %v, want %v", p, got, want)
		}
	}
	if len(stages) < 20 {
		t.Errorf("%d plans for more than 2 devices", len(stages))
	}
	seen := map[string]bool{}
	for _, r := range rejected { // a reason for the plan is given once, not for each stage
		if key := fmt.Sprint(r.Config.Plan, r.Config.Shape, r.Why); seen[key] {
			t.Errorf("%s is rejected twice: %s", r.Config.Plan, r.Why)
		} else {
			seen[key] = true
		}
		if strings.Contains(r.Why, "needs 8 devices") || strings.Contains(r.Why, "nodes") {
			t.Errorf("%s: %s", r.Config.Plan, r.Why)
		}
	}
}

// TestAloneExactPlans: exact plans too become ranks.
func TestAloneExactPlans(t *testing.T) {
	c := aloneCampaign(t, `, alone: true, plans: ["dp=1,tp=4,pp=4,mb=1,ga=8"]`)
	c.Space.TP, c.Space.PP = nil, nil
	points, _ := mustPoints(t, c, cpuMachine(1))
	var stages []int
	for _, p := range points {
		if p.Config.Plan.AccumSteps == 8 {
			stages = append(stages, p.Config.AloneStage)
		}
	}
	if slices.Sort(stages); !slices.Equal(stages, []int{1, 2, 4}) {
		t.Errorf("stages %v", stages)
	}
}

// TestAloneIdentity: the stages of a plan are different points; other points have the identity that they had.
func TestAloneIdentity(t *testing.T) {
	c := aloneCampaign(t, "")
	points, _ := mustPoints(t, c, cpuMachine(2))
	whole, one := points[0].Config, points[0].Config
	one.AloneStage = 1
	if IdentityOf(whole) == IdentityOf(one) || strings.Contains(IdentityOf(whole).String(), "alone") || !strings.HasSuffix(IdentityOf(one).String(), ", one rank of stage 1 alone") {
		t.Errorf("%s and %s", IdentityOf(whole), IdentityOf(one))
	}
}

// closing is a lab that is closed.
type closing struct {
	*lab
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

// TestRunMeasuresAlone: a campaign measures every rank once and continues where it was, each rank counts as one device, and
// the runner is closed once in each session.
func TestRunMeasuresAlone(t *testing.T) {
	c, sink := aloneCampaign(t, ", alone: true"), &memorySink{}
	c.Choose, c.Runner.Name = Random, RunnerSynthetic
	points, _ := mustPoints(t, c, cpuMachine(2))
	device, wall := 0.0, 0.0
	for session := 1; len(sink.rows) < len(points); session++ {
		o, l := options(t, sink)
		r := &closing{lab: l}
		o.Runner, o.Rows = r, slices.Clone(sink.rows)
		c.Budget.Points += 30
		state := mustRun(t, c, o)
		if r.closed != 1 {
			t.Fatalf("session %d: closed %d times", session, r.closed)
		}
		device = state.DeviceSec
	}
	seen, whole := map[Identity]bool{}, 0.0
	for _, m := range sink.rows {
		seen[IdentityOf(m.Config)] = true
		if held := HeldSec(m); m.Config.Alone() {
			wall += held
		} else {
			whole += held * float64(m.Config.Plan.Devices())
		}
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != len(points) || len(sink.rows) != len(points) {
		t.Errorf("%d rows of %d points, want %d", len(sink.rows), len(seen), len(points))
	}
	if math.Abs(device-wall-whole) > 1e-6*device {
		t.Errorf("%g device-seconds, want %g of ranks alone and %g of whole plans", device, wall, whole)
	}
}

// TestAloneRunners: other runners cannot run one rank without the others.
func TestAloneRunners(t *testing.T) {
	const head = "name: a\nmodels: [{name: m, kind: decoder, layers: 8, hidden: 64, ffn: 256, heads: 4, vocab: 100, seq_len: 16}]\nspace: {alone: true}\n"
	for runner, want := range map[string]string{
		"{name: command, command: train}": ":3:9: alone has no effect with runner command",
		"{name: replay, source: s}":       ":3:9: alone has no effect with runner replay",
		"torchrun":                        "",
		"synthetic":                       "",
	} {
		_, err := ReadCampaign("f.yaml", []byte(head+"runner: "+runner+"\n"), testCatalog)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", runner, err, want)
		}
	}
}
