package pacer

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/order"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// followed is a policy that also updates deadlines, and checks them.
type followed struct {
	scheduler.Policy
	deadlines *deadlines
	t         *rapid.T
	said      map[spec.JobID]time.Duration // when the last decision before they ended said that jobs would
}

func (f *followed) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if err := f.deadlines.update(ctx, s); err != nil {
		return scheduler.Decision{}, err
	}
	if err := f.deadlines.forecast(ctx, s); err != nil {
		return scheduler.Decision{}, err
	}
	h := f.deadlines.cases[0]
	for _, j := range s.Jobs() {
		will := h.of(j.Job.ID)
		if will.slots == nil {
			f.t.Fatalf("at %v job %s is never done", s.Now, j.Job.ID)
		}
		f.said[j.Job.ID] = will.end
	}
	if len(h.jobs) != len(s.Jobs()) {
		f.t.Fatalf("at %v it knows %d jobs, %d are there", s.Now, len(h.jobs), len(s.Jobs()))
	}
	if len(f.deadlines.cases) > 1 {
		f.t.Fatal("without intervals there is one case")
	}
	return f.Policy.Decide(ctx, s)
}

// With exact speeds the reference run equals a run of fifo-backfill, and its forecast of
// waiting jobs is exact once no more jobs arrive.
func TestShadowIsFifoBackfill(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := schedulertest.DrawCase(rt)
		p, err := policy.NewRegistry(order.FIFOBackfill).New(policy.Spec{Name: "fifo-backfill"}, policy.Deps{Oracle: c.World.Oracle(0, 0)})
		if err != nil {
			rt.Fatal(err)
		}
		f := &followed{p, newDeadlines(candidate.NewFinder(policy.Deps{Oracle: c.World.Oracle(0, 0)}), 1), rt, map[spec.JobID]time.Duration{}}
		r, err := sim.Run(t.Context(), sim.Config{
			Cluster: c.Cluster, Jobs: c.Jobs, Policy: f, Truth: c.World.Truth(c.Cluster),
			Costs: sim.PerStart(func(spec.Job) time.Duration { return c.StartCost }),
		})
		if err != nil {
			rt.Fatal(err)
		}
		for _, j := range r.Jobs {
			if said := f.said[j.Job.ID]; j.Finished && (said-j.End).Abs() > time.Millisecond {
				rt.Errorf("job %s ends at %v, in the reference run at %v", j.Job.ID, j.End, said)
			}
		}
	})
}

// A job without a prediction ends in the reference run when it really ends; until then the
// jobs behind it have no deadline.
func TestShadowOfUnknownJobs(t *testing.T) {
	c := schedulertest.Nodes(1, 1)
	job := func(id spec.JobID) *scheduler.JobState {
		return &scheduler.JobState{Job: &spec.Job{ID: id, Plan: schedulertest.OnePlan(1), Devices: 1}, Remaining: 10}
	}
	first, second, third := job("first"), job("second"), job("third")
	third.Job.Duration = 40 * time.Second
	p := newDeadlines(candidate.NewFinder(policy.Deps{}), 1)
	at := func(now time.Duration, present ...*scheduler.JobState) map[spec.JobID]*referenceJob {
		t.Helper()
		snapshot := scheduler.NewSnapshot(now, c, present)
		if err := p.update(t.Context(), snapshot); err != nil {
			t.Fatal(err)
		}
		if err := p.forecast(t.Context(), snapshot); err != nil {
			t.Fatal(err)
		}
		return p.cases[0].forecast
	}
	if ahead := at(0, first, second, third); ahead["second"].end < unknownDuration || ahead["third"].end < unknownDuration {
		t.Errorf("behind one that never ends they do at %v and %v", ahead["second"].end, ahead["third"].end)
	}
	at(100*time.Second, second, third)
	h := p.cases[0]
	if h.runs[0].job.ID != "second" {
		t.Fatalf("%s runs, want second", h.runs[0].job.ID)
	}
	at(150*time.Second, third)
	if r := h.of("third"); len(h.runs) != 1 || r.end != 190*time.Second {
		t.Errorf("the third ends at %v, want 190 s", r.end)
	}
}

// learner is an oracle of one speed that can change.
type learner struct {
	scheduler.Oracle
	revision int
}

func (l *learner) Revision(spec.Key) int                                        { return l.revision }
func (*learner) Learned() scheduler.Learned                                     { return scheduler.Learned{} }
func (*learner) Learn(context.Context, time.Duration, []spec.Measurement) error { return nil }

// When predictions change the reference run is repeated: a job gets the deadline it would
// have had with the new speeds, even if that has passed.
func TestPromisesAreWhatIsKnownNow(t *testing.T) {
	c := schedulertest.Nodes(1, 1)
	oracle := func(rate float64) scheduler.Oracle {
		w := &schedulertest.World{}
		w.Add("m", c.Groups[0].Accelerator.Name, schedulertest.OnePlan(1), spec.NewShape(1), rate)
		return w.Oracle(0, 0)
	}
	l := &learner{oracle(1), 1}
	p := newDeadlines(candidate.NewFinder(policy.Deps{Oracle: l}), 1)
	job := func(id spec.JobID) *scheduler.JobState {
		return &scheduler.JobState{Job: &spec.Job{ID: id, Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: 100}, Remaining: 100}
	}
	first, second := job("first"), job("second")
	for _, at := range []struct {
		now           time.Duration
		rate          float64
		inside        []*scheduler.JobState
		first, second time.Duration
	}{
		{0, 1, []*scheduler.JobState{first}, 100, 0},
		{50, 1, []*scheduler.JobState{first, second}, 100, 200},
		{150, 1, []*scheduler.JobState{first, second}, 100, 200},
		{160, 0.5, []*scheduler.JobState{first, second}, 200, 400},
		{170, 4, []*scheduler.JobState{first, second}, 25, 75},
		{500, 4, []*scheduler.JobState{second}, 0, 75},
		{510, 2, []*scheduler.JobState{second}, 0, 75}, // done with by then
	} {
		if l.Oracle = oracle(at.rate); at.rate != 1 {
			l.revision++
		}
		s := scheduler.NewSnapshot(at.now*time.Second, c, at.inside)
		if err := p.update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := p.forecast(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[spec.JobID]time.Duration{"first": at.first, "second": at.second} {
			got := p.cases[0].of(id)
			if want == 0 && got != nil || want > 0 && (got == nil || got.end != want*time.Second) {
				t.Errorf("at %d s, %g steps/s: %s ends as in %+v, want after %d s", at.now, at.rate, id, got, want)
			}
		}
	}
}

// Drawn cases have the deviation of the intervals, in antithetic pairs, equal for all jobs
// with the same configuration. Without intervals there are no drawn cases.
func TestDrawnCases(t *testing.T) {
	p := newDeadlines(candidate.NewFinder(policy.Deps{}), 0.5)
	j := &spec.Job{Model: spec.Model{Name: "m"}}
	sum, n := 0.0, 0
	for devices := 1; devices <= 200; devices++ {
		w := &candidate.Config{Shape: spec.NewShape(devices), Rate: 1, Spread: 0.2 * stats.Normal90}
		for k := range drawnPairs {
			x, y := p.slowdown(2*k, j, w), p.slowdown(2*k+1, j, w)
			if math.Abs(x*y-1) > 1e-12 || x != p.slowdown(2*k, &spec.Job{Model: j.Model, ID: "other"}, w) {
				t.Fatalf("%d devices: %g and %g times as slow, want one as much more as the other is less, of all such jobs", devices, x, y)
			}
			sum, n = sum+math.Log(x)*math.Log(x), n+1
		}
	}
	if got := math.Sqrt(sum / float64(n)); math.Abs(got-0.1) > 0.01 {
		t.Errorf("the deviation is %g, want half of 0.2", got)
	}
	if got := p.slowdown(0, j, &candidate.Config{Rate: 1}); got != 1 {
		t.Errorf("where the speed is sure it is %g times as slow", got)
	}
}

// Deadlines differ between cases; each case is fifo-backfill with other speeds.
func TestCasesDiffer(t *testing.T) {
	c := schedulertest.Nodes(1, 1)
	w := &schedulertest.World{}
	for _, m := range []string{"m", "n"} {
		w.Add(m, c.Groups[0].Accelerator.Name, schedulertest.OnePlan(1), spec.NewShape(1), 1)
	}
	b := candidate.NewFinder(policy.Deps{Oracle: unsureOracle{w.Oracle(0, 0)}})
	p := newDeadlines(b, 1)
	var jobs []*scheduler.JobState
	for _, m := range []string{"m", "n"} {
		jobs = append(jobs, &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(m), Model: spec.Model{Name: m}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: 100}, Remaining: 100})
	}
	s := scheduler.NewSnapshot(0, c, jobs)
	if err := p.update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := p.forecast(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if len(p.cases) != 1+2*drawnPairs {
		t.Fatalf("%d cases, want %d", len(p.cases), 1+2*drawnPairs)
	}
	ends := map[time.Duration]bool{}
	for k, h := range p.cases {
		first, second := h.of("m"), h.of("n")
		if second.end-second.run != first.end {
			t.Errorf("case %d: the second runs for %v up to %v, the first ends at %v", k, second.run, second.end, first.end)
		}
		ends[first.end] = true
	}
	if len(ends) != len(p.cases) {
		t.Errorf("%d different ends of the first in %d cases", len(ends), len(p.cases))
	}
}

// unsureOracle is an oracle with intervals of 20 % around its speeds.
type unsureOracle struct{ scheduler.Oracle }

func (u unsureOracle) Rank(ctx context.Context, r planner.Request) (planner.Ranking, error) {
	out, err := u.Oracle.Rank(ctx, r)
	out.Choices = slices.Clone(out.Choices)
	for i := range out.Choices {
		p := &out.Choices[i].Prediction
		p.Lo, p.Hi = p.Throughput/1.2, p.Throughput*1.2
	}
	return out, err
}

// unsure predicts a step a second for every device, within half.
type unsure struct{}

func (unsure) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	thr := float64(c.Plan.Devices() * c.Plan.GlobalBatch())
	return spec.Prediction{Throughput: thr, Lo: thr / 1.5, Hi: thr * 1.5, By: "test"}, nil
}

// TestStale: the cases are run again where the progress of jobs changed the speed of a size that a present job asked for,
// unless too many jobs have arrived since they were idle.
func TestStale(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 2, Accelerator: spec.Accelerator{Name: "x"}}}}
	plan := schedulertest.OnePlan(2)
	space := planner.NewMeasured([]spec.Config{{Model: spec.Model{Name: "m"}, Accelerator: c.Groups[0].Accelerator, Plan: plan.Normal(), Shape: spec.NewShape(2)}})
	for name, v := range map[string]struct {
		devices, log int
		gone, want   bool
	}{"its size": {2, 1, false, true}, "another size": {1, 1, false, false}, "gone": {2, 1, true, false}, "many arrivals": {2, mostReplayed + 1, false, false}} {
		finder := candidate.NewFinder(policy.Deps{Oracle: planner.New(unsure{}, planner.Options{Space: space})})
		p := newDeadlines(finder, 1)
		a := &arrival{job: &spec.Job{ID: "a", Model: spec.Model{Name: "m"}, Plan: plan, GlobalBatch: plan.GlobalBatch(), Devices: v.devices}}
		p.present["a"], p.log = a, make([]*arrival, v.log)
		if p.stale(c, []*arrival{a}) {
			t.Errorf("%s: stale at first", name)
		}
		ran := &scheduler.JobState{Job: &spec.Job{ID: "b", Model: spec.Model{Name: "m"}, GlobalBatch: plan.GlobalBatch()}, Ran: scheduler.Ran{Steps: 100, Time: time.Minute}}
		held := &candidate.Config{Plan: plan.Normal(), Shape: spec.NewShape(2), Devices: 2, Spread: 0.5}
		if !finder.Observe(maps.All(map[*scheduler.JobState]*candidate.Config{ran: held})) {
			t.Fatalf("%s: nothing was learned", name)
		}
		if v.gone {
			delete(p.present, "a")
		}
		if got := p.stale(c, nil); got != v.want || p.stale(c, nil) {
			t.Errorf("%s: stale %v, want %v, and once", name, got, v.want)
		}
	}
}
