package learn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// world is a cluster of 8 devices. Model "wide" scales linearly, model "narrow" hardly at all.
func world() (*schedulertest.World, spec.Cluster) {
	w := &schedulertest.World{}
	for n := 1; n <= 8; n *= 2 {
		w.Add("wide", "x", schedulertest.OnePlan(n), spec.NewShape(n), float64(n))
		w.Add("narrow", "x", schedulertest.OnePlan(n), spec.NewShape(n), 1+float64(n)/100)
	}
	return w, schedulertest.Nodes(1, 8)
}

// draw returns jobs of both models.
func draw(_ context.Context, number int) (Episode, error) {
	w, cluster := world()
	r := stream(3, "test", number)
	var jobs []spec.Job
	for i := range 10 {
		model := []string{"narrow", "wide"}[r.IntN(2)]
		jobs = append(jobs, spec.Job{ID: spec.JobID(fmt.Sprintf("j%02d", i)), Model: spec.Model{Name: model}, Plan: schedulertest.OnePlan(1), Devices: 1,
			Steps: 300 + 600*r.Float64(), Submit: time.Duration(i) * 2 * time.Minute})
	}
	config := sim.Config{Cluster: cluster, Jobs: jobs, Truth: w.Truth(cluster)}
	return Episode{Config: config, Deps: policy.Deps{Oracle: w.Oracle(0, 1)}}, nil
}

func options() Options {
	o := DefaultOptions()
	o.Form = dl2.Form{Jobs: 8, Types: []string{"narrow", "wide"}, SlotSec: 120, Speeds: true}
	o.Hidden, o.Validation = 24, 3
	o.Supervised = Supervised{Teacher: "optimus-oracle", Updates: 60, Batch: 128, Rate: 0.01, Rounds: 3, Episodes: 3}
	r := &o.Reinforced
	r.Iterations, r.Episodes, r.Updates, r.Batch, r.Warm, r.Rate = 4, 3, 6, 128, 1, 1e-3
	return o
}

func train(t *testing.T, o Options, from *dl2.Model) (*dl2.Model, []Point) {
	t.Helper()
	tr, err := NewTrainer(o, draw, from)
	if err != nil {
		t.Fatal(err)
	}
	var points []Point
	tr.OnPoint = func(p Point) error { points = append(points, p); return nil }
	m, err := tr.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m, points
}

// TestImitates: after 60 updates completion times are near the teacher's, and the loss has fallen.
func TestImitates(t *testing.T) {
	for _, dense := range []bool{false, true} {
		o := options()
		o.Form.Dense, o.Reinforced.Iterations = dense, 0
		_, points := train(t, o, nil)
		first, last := points[0], points[len(points)-1]
		if last.JCTSec == 0 || last.JCTSec > 1.15*last.Teacher || last.Losses.Policy > first.Losses.Policy/2 || !(last.Agreement > 0.9 && last.Agreement <= 1) {
			t.Errorf("dense %v: JCT %.0f s, the teacher's %.0f s, loss %.3f from %.3f, %.3f of the actions agree", dense, last.JCTSec, last.Teacher, last.Losses.Policy, first.Losses.Policy, last.Agreement)
		}
	}
}

// TestReinforces: without a teacher completion times fall.
func TestReinforces(t *testing.T) {
	for _, reward := range []Reward{Progress, Waiting, PerAction} {
		o := options()
		o.Supervised.Updates, o.Reinforced.Iterations, o.Reinforced.Reward = 0, 12, reward
		o.Reinforced.Rate, o.ValidateIterations = 0.003, 1
		_, points := train(t, o, nil)
		least := math.Inf(1)
		for _, p := range points {
			least = min(least, p.JCTSec)
		}
		if first := points[0].JCTSec; !(least < first) {
			t.Errorf("reward %s: JCT %.0f s, at first %.0f s", reward, least, first)
		}
	}
}

// TestDeterministic: any number of cores gives the same network.
func TestDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, _ := train(t, options(), nil)
	runtime.GOMAXPROCS(4)
	four, _ := train(t, options(), nil)
	if !slices.Equal(one.Policy.Params(), four.Policy.Params()) || !slices.Equal(one.Value.Params(), four.Value.Params()) {
		t.Error("4 cores train another network than 1")
	}
}

// TestDiverges: a much too high rate ends training with an error, and the saved policy is finite.
func TestDiverges(t *testing.T) {
	o := options()
	tr, err := NewTrainer(o, draw, nil)
	if err != nil {
		t.Fatal(err)
	}
	var saved *dl2.Model
	tr.Save = func(m *dl2.Model) error { saved = m; return nil }
	tr.OnPoint = func(p Point) error {
		if p.Phase == reinforced && p.Update == 2 {
			tr.model.Policy.Params()[7] = float32(math.NaN())
		}
		return nil
	}
	if _, err := tr.Run(t.Context()); !errors.Is(err, ErrDiverged) {
		t.Fatalf("got %v", err)
	}
	if saved == nil {
		t.Fatal("nothing was saved before")
	}
	if _, err := saved.Encode(false); err != nil {
		t.Errorf("what was saved: %v", err)
	}
}

func TestGoesOn(t *testing.T) {
	o := options()
	o.Reinforced.Iterations = 0
	m, _ := train(t, o, nil)
	o.Supervised.Updates, o.Reinforced.Iterations = 0, 1
	if _, points := train(t, o, m); points[0].Phase != reinforced {
		t.Errorf("goes on with %q", points[0].Phase)
	}
	o.Form.Jobs = 9
	if _, err := NewTrainer(o, draw, m); !errors.Is(err, dl2.ErrOtherForm) {
		t.Errorf("other jobs: %v", err)
	}
	o.Form.Jobs, m.Value = 8, nil
	if _, err := NewTrainer(o, draw, m); err == nil || !strings.Contains(err.Error(), "no value network") {
		t.Errorf("without a value network: %v", err)
	}
}

func TestOptionsValidate(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"set at least one":  func(o *Options) { o.Supervised.Updates, o.Reinforced.Iterations = 0, 0 },
		"discount 2":        func(o *Options) { o.Reinforced.Discount = 2 },
		"reward \"fame\"":   func(o *Options) { o.Reinforced.Reward = "fame" },
		"rounds 1000":       func(o *Options) { o.Supervised.Rounds = 1000 },
		"0 job types":       func(o *Options) { o.Form.Types = nil },
		"softening 0.5":     func(o *Options) { o.Reinforced.Soften = 0.5 },
		"entropy NaN":       func(o *Options) { o.Reinforced.Entropy = math.NaN() },
		"hidden units 0":    func(o *Options) { o.Hidden = 0 },
		"validation episod": func(o *Options) { o.Validation = 0 },
	} {
		o := options()
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, teacher := range []string{"nonesuch", "fifo,las", "fifo:x=1"} {
		o := options()
		o.Supervised.Teacher = teacher
		if _, err := NewTrainer(o, draw, nil); err == nil {
			t.Errorf("teacher %s was accepted", teacher)
		}
	}
}

// TestReturns: rewards 1, 2 and 4 in slots of 1, 2 and 1 times SlotSec with discount 1/2.
func TestReturns(t *testing.T) {
	o := options()
	o.Reinforced.Discount, o.Reinforced.Lambda, o.Reinforced.NoValue = 0.5, 1, true
	tr, err := NewTrainer(o, draw, nil)
	if err != nil {
		t.Fatal(err)
	}
	slots := []slot{{reward: 1, took: 2 * time.Minute, actions: make([]action, 2)}, {reward: 2, took: 4 * time.Minute, actions: make([]action, 1)},
		{reward: 4, took: 2 * time.Minute, actions: make([]action, 1)}}
	var got []float64
	for _, s := range tr.returns(slots) {
		got = append(got, s.target)
	}
	if want := []float64{2.5, 2.5, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("targets %v, want %v", got, want)
	}
}

// TestRewards: one job of 600 steps runs alone on the first slot's allocation.
func TestRewards(t *testing.T) {
	for reward, want := range map[Reward]float64{Progress: 1, Waiting: -5} {
		w, cluster := world()
		o := newObserver(reward, 60)
		f := options().Form
		g := &guide{form: &f, stream: stream(1, "x", 0), to: o, targets: map[spec.JobID]target{"j": {workers: 2}}}
		p, err := dl2.New(policy.Deps{Oracle: w.Oracle(0, 1)}, f, g)
		if err != nil {
			t.Fatal(err)
		}
		o.Policy = p
		r, err := sim.Run(t.Context(), sim.Config{Cluster: cluster, Truth: w.Truth(cluster), Policy: o, PolicyName: "dl2", Jobs: []spec.Job{
			{ID: "j", Model: spec.Model{Name: "wide"}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: 600}}})
		if err != nil {
			t.Fatal(err)
		}
		o.finish(r)
		sum, took := 0.0, time.Duration(0)
		for _, s := range o.slots {
			sum, took = sum+s.reward, took+s.took
		}
		if math.Abs(sum-want) > 1e-9 || took != 5*time.Minute {
			t.Errorf("%s: %g in %v, want %g in 5m", reward, sum, took, want)
		}
	}
}

func TestResample(t *testing.T) {
	e, _ := draw(t.Context(), 1)
	jobs := e.Config.Jobs
	a, b := Resample(jobs, 1, 4), Resample(jobs, 1, 4)
	if !slices.Equal(a, b) || slices.Equal(a, Resample(jobs, 1, 5)) || slices.Equal(a, Resample(jobs, 1, -5)) {
		t.Error("equal numbers must give equal jobs, others others")
	}
	if a[9].Submit != jobs[9].Submit-jobs[0].Submit || a[0].Submit != 0 {
		t.Errorf("submitted from %v to %v, want the span of the trace", a[0].Submit, a[9].Submit)
	}
}

func TestCurves(t *testing.T) {
	points := []Point{{Phase: "supervised", Update: 1, Of: 2}, {Phase: "supervised", Update: 2, Of: 2, JCTSec: 100, Teacher: 90, Best: true}, {Phase: "reinforced", Update: 1, Of: 1, JCTSec: 80, Teacher: 90}}
	var csv, svg, none bytes.Buffer
	if err := errors.Join(WriteCSV(&csv, points), WriteSVG(&svg, points), WriteSVG(&none, nil)); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(csv.String(), "\n"); lines[1] != "supervised,1,0,0,0,0,,,false" || lines[2] != "supervised,2,0,0,0,0,100,90,true" {
		t.Errorf("CSV:\n%s", csv.String())
	}
	for _, s := range []string{"NaN", "Inf"} {
		if strings.Contains(svg.String()+none.String(), s) {
			t.Errorf("the picture has %s", s)
		}
	}
	if strings.Count(svg.String(), "<circle") != 2 {
		t.Errorf("%d circles, want 2", strings.Count(svg.String(), "<circle"))
	}
}

// TestTargets: a partial decision leaves the allocation of other jobs.
func TestTargets(t *testing.T) {
	hold := func(id spec.JobID, n int) *scheduler.JobState {
		return &scheduler.JobState{Job: &spec.Job{ID: id, Devices: n}, Grant: &scheduler.Grant{Job: id, Slots: []scheduler.Slot{{Devices: n}}}}
	}
	a, b := hold("a", 2), hold("b", 1)
	s := scheduler.NewSnapshot(0, schedulertest.Nodes(1, 8), []*scheduler.JobState{a, b})
	more := &scheduler.Grant{Job: "c", Slots: []scheduler.Slot{{Devices: 4}}}
	got := targets(s, &scheduler.Decision{Keep: true, Grants: []*scheduler.Grant{more}, Stops: []spec.JobID{"b"}})
	if got["a"].workers != 2 || got["b"].workers != 0 || got["c"].workers != 4 {
		t.Errorf("got %+v", got)
	}
	got = targets(s, &scheduler.Decision{Grants: []*scheduler.Grant{more}})
	if got["a"].workers != 0 || got["c"].workers != 4 {
		t.Errorf("the whole target: got %+v", got)
	}
}

// TestBetter: among copies the higher agreement wins even with longer completion times; then the lower completion time
// wins.
func TestBetter(t *testing.T) {
	var tr Trainer
	kept := ""
	for _, p := range []struct {
		name string
		Point
	}{
		{"first", Point{Phase: supervised, Agreement: 0.4, JCTSec: 50}},
		{"closer", Point{Phase: supervised, Agreement: 0.9, JCTSec: 100}},
		{"farther", Point{Phase: supervised, Agreement: 0.8, JCTSec: 40}},
		{"slower", Point{Phase: reinforced, JCTSec: 110}},
		{"faster", Point{Phase: reinforced, JCTSec: 90}},
	} {
		if tr.better(p.Point) {
			tr.best = p.Point
			kept += p.name + " "
		}
	}
	if kept != "first closer faster " {
		t.Errorf("kept %s", kept)
	}
}

// TestGradient: the gradient vanishes where the probability has changed by the clip in the favoured direction.
func TestGradient(t *testing.T) {
	const clip = 0.2
	for _, c := range []struct {
		now, then, advantage float64
		moves                float64 // sign of the gradient by the action's own input of the softmax
		loss                 float64
	}{
		{0.5, 0.5, 2, -1, -2},
		{0.5, 0.5, -2, 1, 2},
		{0.55, 0.5, 2, -1, -2.2},
		{0.7, 0.5, 2, 0, -2.4},
		{0.7, 0.5, -2, 1, 2.8},
		{0.3, 0.5, -2, 0, 1.6},
		{0.3, 0.5, 2, -1, -1.2},
	} {
		b := batch{n: 1, actions: []int{0}, samples: []*sample{{action: action{prob: c.then}}}}
		p, dz := []float32{float32(c.now), float32(1 - c.now)}, make([]float32, 2)
		loss := b.gradient(0, p, dz, c.advantage, clip)
		if math.Abs(loss-c.loss) > 1e-6 || cmp.Compare(float64(dz[0]), 0) != int(c.moves) || math.Abs(float64(dz[0]+dz[1])) > 1e-6 {
			t.Errorf("%+v: loss %g, gradient %v", c, loss, dz)
		}
	}
}
