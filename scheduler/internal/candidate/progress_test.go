package candidate

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// unsure predicts that a step takes a second on a device, half on two, and a tenth longer with tensor parallelism; the
// logarithm of the speed to within half.
type unsure struct{ half float64 }

func (u unsure) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	rate := float64(c.Plan.Devices())
	if c.Plan.TP > 1 {
		rate /= 1.1
	}
	thr := rate * float64(c.Plan.GlobalBatch())
	return spec.Prediction{Throughput: thr, Lo: thr / math.Exp(u.half), Hi: thr * math.Exp(u.half), By: "test"}, nil
}

// watched lets a finder see a job on two devices with data parallelism, and returns its candidates on one and on two.
type watched struct {
	*Finder
	cluster spec.Cluster
	job     *scheduler.JobState
}

func newWatched(half float64) *watched {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 2, Accelerator: spec.Accelerator{Name: "x"}}}}
	var plans []spec.Config
	for _, model := range []string{"m", "other"} {
		for _, p := range []spec.Plan{{DP: 1, MicroBatch: 8}, dataParallel, tensorParallel} {
			p = p.Normal()
			plans = append(plans, spec.Config{Model: spec.Model{Name: model}, Accelerator: c.Groups[0].Accelerator, Plan: p, Shape: spec.NewShape(p.Devices())})
		}
	}
	return &watched{
		Finder:  NewFinder(policy.Deps{Oracle: planner.New(unsure{half}, planner.Options{Space: planner.NewMeasured(plans)})}),
		cluster: c,
		job: &scheduler.JobState{Job: &spec.Job{ID: "a", Model: spec.Model{Name: "m"}, Plan: dataParallel.Normal(), GlobalBatch: 8, Devices: 2},
			Grant: &scheduler.Grant{Job: "a", Plan: dataParallel.Normal(), Shape: spec.NewShape(2), Slots: []scheduler.Slot{{Node: 0, Devices: 2}}}},
	}
}

var dataParallel, tensorParallel = spec.Plan{DP: 2, MicroBatch: 4}, spec.Plan{DP: 1, TP: 2, MicroBatch: 8}

// see observes the job, which ran so many seconds with its grant and made so many steps.
func (w *watched) see(t *testing.T, seconds, steps float64) (changed bool) {
	t.Helper()
	cv, err := w.Curve(t.Context(), w.cluster, w.job.Job)
	if err != nil {
		t.Fatal(err)
	}
	held, err := w.Held(t.Context(), w.cluster, w.job, 0, cv)
	if err != nil || held == nil {
		t.Fatalf("candidate %v, %v", held, err)
	}
	w.job.Ran = scheduler.Ran{Steps: steps, Time: time.Duration(seconds * float64(time.Second))}
	return w.Observe(maps.All(map[*scheduler.JobState]*Config{w.job: held}))
}

// on returns the fastest candidate on n devices of a job of the model.
func (w *watched) on(t *testing.T, model string, n int) Config {
	t.Helper()
	j := *w.job.Job
	j.Model.Name = model
	cv, err := w.Curve(t.Context(), w.cluster, &j)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(cv.Configs, func(o Config) bool { return o.Devices == n })
	return cv.Configs[i]
}

// TestProgress: a candidate has the mean of the predicted speed and that with which jobs ran in it, weighted by their
// exactness. Others keep theirs.
func TestProgress(t *testing.T) {
	const half = 0.5
	sd := half / stats.Normal90
	for _, c := range []struct {
		name  string
		half  float64
		run   func(t *testing.T, w *watched) // seen at last, or not
		steps float64                        // 0 = nothing is learned
		rate  float64
	}{
		{"at once", half, func(t *testing.T, w *watched) { w.see(t, 50, 95) }, 95, 1.9},
		{"over several decisions", half, func(t *testing.T, w *watched) { w.see(t, 40, 75); w.see(t, 100, 190) }, 190, 1.9},
		{"less than twice as many steps", half, func(t *testing.T, w *watched) { w.see(t, 50, 95); w.see(t, 100, 189) }, 95, 1.9},
		{"fewer steps than the prediction is exact to", half, func(t *testing.T, w *watched) { w.see(t, 10, 3) }, 0, 0},
		{"progress that is estimated", half, func(t *testing.T, w *watched) { w.job.Done = 95; w.see(t, 0, 0) }, 0, 0},
		{"reports that repeat", half, func(t *testing.T, w *watched) {
			w.see(t, 50, 95)
			for range 5 {
				w.see(t, 50, 95)
			}
			w.see(t, 100, 190)
		}, 190, 1.9},
		{"a report of fewer steps", half, func(t *testing.T, w *watched) { w.see(t, 50, 95); w.see(t, 0, 0); w.see(t, 50, 95) }, 190, 1.9},
		{"another run", half, func(t *testing.T, w *watched) { w.see(t, 50, 95); w.job.Since++; w.see(t, 50, 95) }, 190, 1.9},
		{"a node that was slow", half, func(t *testing.T, w *watched) {
			for n := 1.0; n <= 20; n++ {
				w.see(t, 1000*n, 1000*n)
			}
			for n := 1.0; n <= 2; n++ {
				w.see(t, 20000+1000*n, 20000+1900*n)
			}
		}, 1900, 1.9},
		{"a plan of another batch", half, func(t *testing.T, w *watched) {
			held, j := w.on(t, "m", 2), *w.job.Job
			j.GlobalBatch, w.job.Job = 16, &j
			w.job.Ran = scheduler.Ran{Steps: 95, Time: 50 * time.Second}
			w.Observe(maps.All(map[*scheduler.JobState]*Config{w.job: &held}))
			j.GlobalBatch = 8
		}, 0, 0},
		{"a certain prediction", 0, func(t *testing.T, w *watched) { w.see(t, 50, 95) }, 0, 0},
		{"an oracle that learns", half, func(t *testing.T, w *watched) { w.Learns = &revised{}; w.see(t, 50, 95) }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWatched(c.half)
			one, other := w.on(t, "m", 1), w.on(t, "other", 2)
			c.run(t, w)
			rate, spread := 2.0, c.half
			if c.steps > 0 {
				precision, own := c.steps*c.steps, 1/(sd*sd)
				rate = math.Exp((precision*math.Log(c.rate) + own*math.Log(2)) / (precision + own))
				spread = stats.Normal90 / math.Sqrt(precision+own)
			}
			two := w.on(t, "m", 2)
			if math.Abs(two.Rate/rate-1) > 1e-12 || math.Abs(two.Spread-spread) > 1e-12 || two.Plan != w.job.Grant.Plan {
				t.Errorf("%s at %g steps/s, spread %g; want %s at %g, %g", two.Plan, two.Rate, two.Spread, w.job.Grant.Plan, rate, spread)
			}
			set, err := w.AsSubmitted(t.Context(), w.cluster, w.job.Job)
			if err != nil {
				t.Fatal(err)
			}
			if own := set.Configs[0]; own.Rate != two.Rate || own.Spread != two.Spread {
				t.Errorf("as submitted %g steps/s, spread %g, in the curve %g, %g", own.Rate, own.Spread, two.Rate, two.Spread)
			}
			if now := w.on(t, "m", 1); now.Rate != one.Rate || now.Spread != one.Spread {
				t.Errorf("on one device %+v, was %+v", now, one)
			}
			if now := w.on(t, "other", 2); now.Rate != other.Rate {
				t.Errorf("of another model %+v, was %+v", now, other)
			}
		})
	}
}

// TestSlowPlan: a plan that ran slower than another is predicted to leaves its place to that one, until that ran too.
func TestSlowPlan(t *testing.T) {
	w := newWatched(0.5)
	if !w.see(t, 60, 60) {
		t.Fatal("no candidate changed")
	}
	if two := w.on(t, "m", 2); two.Plan.TP != 2 || math.Abs(two.Rate-2/1.1) > 1e-12 {
		t.Errorf("%s at %g steps/s, want tensor parallelism at %g", two.Plan, two.Rate, 2/1.1)
	}
	if w.see(t, 60, 60) { // its plan is in no curve now
		t.Error("candidates changed without progress")
	}
	w.job.Grant.Plan, w.job.Since = tensorParallel.Normal(), time.Minute
	w.see(t, 100, 50)
	if two := w.on(t, "m", 2); two.Plan.DP != 2 || math.Abs(two.Rate-1) > 0.01 {
		t.Errorf("%s at %g steps/s, want data parallelism at 1", two.Plan, two.Rate)
	}
}

// TestSameSpeed: after enough steps, candidates do not change as long as the speed does not, and few observations are kept.
func TestSameSpeed(t *testing.T) {
	w := newWatched(0.5)
	changes := 0
	for n := 1.0; n <= 100; n++ {
		if w.see(t, 500*n, 900*n) {
			changes++
		}
	}
	if changes > 2 {
		t.Errorf("%d changes, want at most 2", changes)
	}
	for n := range mostRan + 1 {
		w.progress.add(sizeKey{"m", 0, n}, ranKey{seq: n}, ran{1, 1}, 0.5)
	}
	if w.progress.kept > mostRan {
		t.Errorf("%d observations are kept, want at most %d", w.progress.kept, mostRan)
	}
	if two := w.on(t, "m", 2); two.Rate != 2 {
		t.Errorf("%g steps/s, want those of the prediction once observations are removed", two.Rate)
	}
}
