package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/loss"
	"github.com/pacer-ml/pacer/scheduler/online"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// testbed is the common part of the simulations of Rubick's workloads: 64 A800 on 8 nodes, 260 s
// per start, resume or reconfiguration, and the measured step times as truth. Only measured (plan,
// placement) pairs may be granted.
type testbed struct {
	truth   *measured.Table
	cluster spec.Cluster
	dir     string
}

func newTestbed(tb testing.TB) testbed {
	tb.Helper()
	dir := filepath.Join(spectest.Shared(tb), "data", "rubick", "simulator", "workloads")
	cl := mustCluster(tb, "8x8xA800")
	return testbed{truth: measured.New(importAll(tb, "rubick")), cluster: cl, dir: dir}
}

// jobs reads workload-NAME.csv; submit times are multiplied by stretch.
func (b testbed) jobs(tb testing.TB, name string, stretch float64) []spec.Job {
	tb.Helper()
	w, err := trace.Open(tb.Context(), filepath.Join(b.dir, "workload-"+name+".csv"), "rubick")
	if err != nil || len(w.Bad) > 0 {
		tb.Fatal(err, w.Bad)
	}
	for i := range w.Jobs {
		w.Jobs[i].Submit = time.Duration(stretch * float64(w.Jobs[i].Submit))
	}
	return w.Jobs
}

func (b testbed) run(tb testing.TB, pol string, jobs []spec.Job, belief perfmodel.Predictor) *sim.Result {
	tb.Helper()
	return b.runSeed(tb, pol, jobs, belief, 0)
}

// runSeed is run with a seed for the policy.
func (b testbed) runSeed(tb testing.TB, pol string, jobs []spec.Job, belief perfmodel.Predictor, seed uint64) *sim.Result {
	tb.Helper()
	return b.simulate(tb, pol, jobs, planner.New(belief, b.space()), nil, seed)
}

// runLearning is runSeed with a belief fitted to at most 8 rows of each model, which then learns
// from noiseless observations of the jobs.
func (b testbed) runLearning(tb testing.TB, pol string, jobs []spec.Job, seed uint64) *sim.Result {
	tb.Helper()
	f, rows := profiledRubick(tb)
	o, err := online.New(tb.Context(), online.Options{Family: f, Rows: rows, Planner: b.space()})
	if err != nil {
		tb.Fatal(err)
	}
	return b.simulate(tb, pol, jobs, o, &sim.Observations{Learner: o, After: 10 * time.Second}, seed)
}

// space has the configurations that may be granted.
func (b testbed) space() planner.Options {
	return planner.Options{Space: planner.NewMeasured(b.truth.Configs())}
}

func (b testbed) simulate(tb testing.TB, pol string, jobs []spec.Job, oracle scheduler.Oracle, observations *sim.Observations, seed uint64) *sim.Result {
	tb.Helper()
	named := mustSpec(tb, pol)
	truth := sim.Predicted{Predictor: b.truth, Cluster: b.cluster}
	p := mustPolicy(tb, named, policy.Deps{Oracle: oracle, Seed: seed, Losses: &loss.Synthetic{Steps: truth.Steps, Sigma: 0.02, Seed: seed}})
	r := mustSimulate(tb, sim.Config{
		Cluster: b.cluster, Jobs: jobs, Policy: p, PolicyName: pol, Observations: observations, Truth: truth,
		Costs: sim.PerStart(func(spec.Job) time.Duration { return 260 * time.Second }),
	})
	return r
}

// profiledRubick returns family rubick and the rows to fit, at most 8 of each model.
func profiledRubick(tb testing.TB) (f perfmodel.Family, profiled []spec.Measurement) {
	tb.Helper()
	f = mustFamily(tb, "rubick")
	for _, rows := range perfmodel.GroupByKey(importAll(tb, "rubick")) {
		fit, _, err := perfmodel.Split(f, rows, 8)
		if err != nil {
			tb.Fatal(err)
		}
		profiled = append(profiled, fit...)
	}
	return f, profiled
}

// fitted returns the rubick family fitted to at most 8 rows of each model.
type fitted map[spec.Key]perfmodel.Fitted

func fitRubick(tb testing.TB) fitted {
	tb.Helper()
	f := mustFamily(tb, "rubick")
	out := fitted{}
	for key, rows := range perfmodel.GroupByKey(importAll(tb, "rubick")) {
		m, _, err := perfmodel.FitKey(context.Background(), f, rows, perfmodel.FitOptions{MaxRows: 8})
		if err != nil {
			tb.Fatal(err)
		}
		out[key] = m
	}
	return out
}

func (f fitted) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	if m, ok := f[c.Key()]; ok {
		return m.Predict(ctx, c)
	}
	return spec.Prediction{}, fmt.Errorf("bench: %s: %w", c.Key(), perfmodel.ErrNotCovered)
}

// wrong is a belief with an independent log-normal error of deviation sigma for every
// configuration.
type wrong struct {
	perfmodel.Predictor
	sigma float64
	seed  uint64
}

func (w wrong) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	p, err := w.Predictor.Predict(ctx, c)
	h := fnv.New64a()
	fmt.Fprintf(h, "%s%s {%s %d %v}", c.Model.Name, c.Plan, c.Shape.Devices, c.Shape.CPUs, c.Shape.HostBytes)
	p.Throughput *= math.Exp(w.sigma * rand.New(rand.NewPCG(w.seed, h.Sum64())).NormFloat64())
	return p, err
}

// figures summarizes a run.
type figures struct {
	report.Summary
	guaranteed, bestEffort float64 // mean completion times, s
}

func summarize(r *sim.Result) figures {
	of := func(guaranteed bool) float64 {
		sum, n := 0.0, 0
		for _, j := range r.Jobs {
			if j.Finished && j.Job.Guaranteed == guaranteed {
				sum, n = sum+j.JCT().Seconds(), n+1
			}
		}
		return sum / float64(max(n, 1))
	}
	return figures{report.Summarize(r, report.Score{}), of(true), of(false)}
}

// later counts the guaranteed jobs that end more than a minute later in r than
// in ref.
func later(r, ref *sim.Result) int {
	n := 0
	for i, j := range r.Jobs {
		if j.Job.Guaranteed && j.End > ref.Jobs[i].End+time.Minute {
			n++
		}
	}
	return n
}

const figuresHead = "policy          trace belief       jobs   avg  guar.   b.e. median    p99    max  makespan restarts dev-h  wall ms"

func (f figures) row(pol, trace, belief string) string {
	return fmt.Sprintf("%-15s %-5s %-11s %5d %5.0f %6.0f %6.0f %6.0f %6.0f %6.0f %9.0f %8d %5.0f %8.0f\n", pol, trace, belief, f.Finished,
		f.AvgJCT, f.guaranteed, f.bestEffort, f.MedianJCT, f.P99JCT, f.MaxJCT, f.Makespan, f.Restarts, f.DeviceHours, 1e3*f.Elapsed)
}

// TestRubickWorkloads runs the first policies on the three traces of Rubick's artifact, with fitted
// and with perfect belief. On base the artifact's own simulator, with its preemption corrected,
// reaches a mean completion time of 7475 s and a makespan of 108,378 s; on mt it leaves 42 jobs
// unfinished.
func TestRubickWorkloads(t *testing.T) {
	b := newTestbed(t)
	beliefs := []struct {
		name string
		p    perfmodel.Predictor
	}{{"fitted", fitRubick(t)}, {"perfect", b.truth}}
	var table strings.Builder
	for _, trace := range []string{"base", "bp", "mt"} {
		jobs := b.jobs(t, trace, 1)
		for _, belief := range beliefs {
			var backfill *sim.Result
			for _, pol := range []string{"fifo", "fifo-backfill", "rubick"} {
				r := b.run(t, pol, jobs, belief.p)
				f := summarize(r)
				table.WriteString(f.row(pol, trace, belief.name))
				switch pol {
				case "fifo-backfill":
					backfill = r
				case "rubick":
					fmt.Fprintf(&table, "  guaranteed jobs that end more than a minute later than under fifo-backfill: %d\n", later(r, backfill))
				}
				if f.Finished != len(jobs) {
					t.Errorf("%s on %s: %d of %d jobs finished", pol, trace, f.Finished, len(jobs))
				}
				if pol == "rubick" && trace != "mt" && (f.AvgJCT > 1500 || f.Makespan > 70000) {
					t.Errorf("rubick on %s, %s belief: mean completion time %.0f s, makespan %.0f s, want at most 1500 and 70,000",
						trace, belief.name, f.AvgJCT, f.Makespan)
				}
				if pol == "rubick" && trace == "mt" && f.AvgJCT > 2500 {
					t.Errorf("rubick on mt, %s belief: mean completion time %.0f s, want at most 2500", belief.name, f.AvgJCT)
				}
			}
		}
	}
	t.Logf("\n%s\n%s", figuresHead, table.String())
}

// TestRubickWithWrongBelief runs base with increasing errors of the belief: configurations
// predicted fast are then partly the ones with lucky errors.
func TestRubickWithWrongBelief(t *testing.T) {
	b := newTestbed(t)
	jobs := b.jobs(t, "base", 1)
	const seeds = 5
	var table strings.Builder
	for _, sigma := range []float64{0.1, 0.2} {
		var avg, span report.Number
		for seed := range uint64(seeds) {
			f := summarize(b.run(t, "rubick", jobs, wrong{b.truth, sigma, seed}))
			table.WriteString(f.row("rubick", "base", fmt.Sprintf("sigma %g/%d", sigma, seed)))
			if f.Finished != len(jobs) || f.AvgJCT > 2500 || f.Makespan > 85000 {
				t.Errorf("sigma %g, seed %d: %d finished, mean completion time %.0f s, makespan %.0f s, want %d, at most 2500 and 85,000",
					sigma, seed, f.Finished, f.AvgJCT, f.Makespan, len(jobs))
			}
			avg, span = avg+f.AvgJCT/seeds, span+f.Makespan/seeds
		}
		fmt.Fprintf(&table, "mean of sigma %g: completion time %.0f s, makespan %.0f s\n", sigma, avg, span)
	}
	t.Logf("\n%s\n%s", figuresHead, table.String())
}

// Two independent runs differ only in wall time.
func TestRubickRunsRepeat(t *testing.T) {
	b := newTestbed(t)
	jobs := b.jobs(t, "mt", 1)
	first := b.run(t, "rubick", jobs, wrong{b.truth, 0.1, 1})
	slices.Reverse(jobs)
	second := b.run(t, "rubick", jobs, wrong{b.truth, 0.1, 1})
	if diff := gocmp.Diff(first, second, cmpopts.IgnoreFields(sim.Result{}, "Elapsed")); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

// A grant of an unmeasured configuration is an error that names it.
func TestUnmeasuredGrantIsAnError(t *testing.T) {
	b := newTestbed(t)
	jobs := b.jobs(t, "base", 1)[:1] // vit on 2 devices
	p := mustPolicy(t, policy.Spec{Name: "fifo"}, policy.Deps{})
	jobs[0].Plan.TP, jobs[0].Plan.DP, jobs[0].Plan.AccumSteps = 2, 1, 2*jobs[0].Plan.AccumSteps
	_, err := sim.Run(t.Context(), sim.Config{Cluster: b.cluster, Jobs: jobs, Policy: p, PolicyName: "fifo",
		Truth: sim.Predicted{Predictor: b.truth, Cluster: b.cluster}})
	if !errors.Is(err, measured.ErrNotMeasured) || !strings.Contains(err.Error(), "policy fifo at 0s: job vit-0 (vit), plan dp=1,tp=2") {
		t.Errorf("error %v, want one that names policy, time, job and plan and wraps %v", err, measured.ErrNotMeasured)
	}
}

// BenchmarkRubickWorkload simulates the base trace, without the time to load tables and belief.
func BenchmarkRubickWorkload(b *testing.B) {
	bed := newTestbed(b)
	jobs := bed.jobs(b, "base", 1)
	belief := fitRubick(b)
	for _, pol := range []string{"fifo-backfill", "rubick"} {
		b.Run("trace=base/policy="+pol, func(b *testing.B) {
			var f figures
			for b.Loop() {
				f = summarize(bed.run(b, pol, jobs, belief))
			}
			b.ReportMetric(float64(f.AvgJCT), "jct-sec")
			b.ReportMetric(float64(f.Makespan), "makespan-sec")
			b.ReportMetric(float64(f.Restarts), "restarts")
		})
	}
}

// BenchmarkRubickOptions measures the figures in the doc comment of the policy: the base trace as
// it is, denser and sparser, with exact beliefs and with log-normal errors. One iteration is
// enough: -benchtime 1x.
func BenchmarkRubickOptions(b *testing.B) {
	bed := newTestbed(b)
	for _, options := range []string{"", ":price=0.02", ":price=0.3", ":gate=0.5", ":gate=2", ":budget=0.05", ":shrink=false", ":grow=false",
		":starve=1e9", ":starve=21600", ":starve=14400", ":starve=7200"} {
		b.Run("policy=rubick"+options, func(b *testing.B) {
			for b.Loop() {
				var avg, span, longest report.Number
				runs := 0
				for _, stretch := range []float64{1, 0.9, 1.15} {
					jobs := bed.jobs(b, "base", stretch)
					for _, sigma := range []float64{0, 0.1, 0.2} {
						for seed := range uint64(5) {
							f := summarize(bed.run(b, "rubick"+options, jobs, wrong{bed.truth, sigma, seed}))
							avg, span, longest, runs = avg+f.AvgJCT, span+f.Makespan, longest+f.MaxJCT, runs+1
						}
					}
				}
				b.ReportMetric(float64(avg)/float64(runs), "jct-sec")
				b.ReportMetric(float64(span)/float64(runs), "makespan-sec")
				b.ReportMetric(float64(longest)/float64(runs), "longest-jct-sec")
			}
		})
	}
}
