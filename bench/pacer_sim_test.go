package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// TestPacerWorkloads runs policy pacer on Rubick's traces, with 5 seeds of its search each. It
// knows the remaining steps, as rubick does, unless a case says otherwise. Its belief is fitted to
// at most 8 rows per model, and learns from the running jobs.
func TestPacerWorkloads(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	for _, c := range []struct {
		name, policy, trace string
		perfect             bool          // see pacerOnBase
		avg, span, restarts report.Number // at most, the last per job
		late                int           // guaranteed jobs at most in one run
	}{
		{"base/learning", "pacer", "base", false, 1150, 64500, 0.5, 0},
		{"base/perfect", "pacer", "base", true, 1100, 63000, 0.5, 0},
		{"base/learning/steps unknown", "pacer:steps=unknown", "base", false, 1600, 66000, 1, 0},
		{"base/learning/half way to the makespan", "pacer:span=0.5", "base", false, 1150, 60500, 0.5, 0},
		{"base/learning/for the makespan", "pacer:span=1", "base", false, 1900, 58500, 0.5, 0},
		{"mt/learning", "pacer", "mt", false, 1650, 64500, 0.5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			jobs := b.jobs(t, c.trace, 1)
			backfill := b.run(t, "fifo-backfill", jobs, b.truth)
			const seeds = 5
			var avg, span, restarts report.Number
			var table strings.Builder
			for seed := range uint64(seeds) {
				var r *sim.Result
				if c.perfect {
					r = b.pacerOnBase(t, jobs, seed)
				} else {
					r = b.runLearning(t, c.policy, jobs, seed)
				}
				f := summarize(r)
				n := later(r, backfill)
				fmt.Fprintf(&table, "%s  guaranteed jobs that end more than a minute later than under fifo-backfill: %d\n", f.row(c.policy, c.trace, fmt.Sprintf("seed %d", seed)), n)
				if f.Finished != len(jobs) || n > c.late {
					t.Errorf("seed %d: %d of %d jobs finished, %d guaranteed ones late, want at most %d", seed, f.Finished, len(jobs), n, c.late)
				}
				avg, span, restarts = avg+f.AvgJCT/seeds, span+f.Makespan/seeds, restarts+report.Number(f.Restarts)/seeds
			}
			t.Logf("\n%s\n%smean completion time %.0f s, makespan %.0f s, %.2f restarts per job", figuresHead, table.String(), avg, span, restarts/report.Number(len(jobs)))
			if avg > c.avg || span > c.span || restarts > c.restarts*report.Number(len(jobs)) {
				t.Errorf("means of %d seeds: %.0f s, %.0f s, %.0f restarts, want at most %.0f, %.0f and %g per job", seeds, avg, span, restarts, c.avg, c.span, c.restarts)
			}
		})
	}
}

// basePacer has the runs of pacer on base with exact predictions, by seed. Two tests compare them with others.
var basePacer [5]struct {
	once sync.Once
	run  *sim.Result
}

// pacerOnBase returns the run with a seed. jobs are those of base. It must not be changed.
func (b testbed) pacerOnBase(tb testing.TB, jobs []spec.Job, seed uint64) *sim.Result {
	tb.Helper()
	of := &basePacer[seed]
	of.once.Do(func() { of.run = b.runSeed(tb, "pacer", jobs, b.truth, seed) })
	if of.run == nil {
		tb.Fatalf("seed %d has no run: see the other test that waits for it", seed)
	}
	return of.run
}

// TestPacerGuaranteesElsewhere runs mt with arrivals moved by half an hour and other jobs
// guaranteed, because guarantees kept on one trace may be chance.
func TestPacerGuaranteesElsewhere(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	const draws = 5
	for _, c := range []struct {
		name    string
		perfect bool
		late    int // of about 970 guaranteed jobs, at most
	}{{"perfect", true, 2}, {"learning", false, 5}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var table strings.Builder
			late := 0
			for seed := range uint64(draws) {
				jobs := moved(b.jobs(t, "mt", 1), seed)
				r := b.runPacer(t, jobs, seed, c.perfect)
				n := later(r, b.run(t, "fifo-backfill", jobs, b.truth))
				late += n
				fmt.Fprintf(&table, "%s  late: %d\n", summarize(r).row("pacer", "moved", fmt.Sprintf("seed %d", seed)), n)
			}
			t.Logf("\n%s\n%s", figuresHead, table.String())
			if late > c.late {
				t.Errorf("%d guaranteed jobs end more than a minute later than under fifo-backfill in %d runs, want at most %d", late, draws, c.late)
			}
		})
	}
}

// runPacer runs pacer with exact predictions, or with predictions that learn.
func (b testbed) runPacer(t *testing.T, jobs []spec.Job, seed uint64, perfect bool) *sim.Result {
	if perfect {
		return b.runSeed(t, "pacer", jobs, b.truth, seed)
	}
	return b.runLearning(t, "pacer", jobs, seed)
}

// moved draws other arrivals, with a root mean square shift of half an hour, and as many other
// guaranteed jobs.
func moved(jobs []spec.Job, seed uint64) []spec.Job {
	rng := rand.New(rand.NewPCG(seed, 0x6d6f7665))
	for i := range jobs {
		jobs[i].Submit = max(jobs[i].Submit+time.Duration(rng.NormFloat64()*float64(30*time.Minute)), 0)
	}
	rng.Shuffle(len(jobs), func(i, j int) { jobs[i].Guaranteed, jobs[j].Guaranteed = jobs[j].Guaranteed, jobs[i].Guaranteed })
	return jobs
}

// TestPacerWrongBelief: with speeds that are wrong by 30 %, pacer learns from the progress of jobs and from the
// predictions of similar configurations if it knows that they are uncertain. Measured were 1.023 of the average with
// exact speeds, and 1.133 where they are taken for certain.
func TestPacerWrongBelief(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	jobs := b.jobs(t, "base", 1)
	average := func(belief perfmodel.Predictor) float64 {
		return float64(summarize(b.run(t, "pacer", jobs, belief)).AvgJCT)
	}
	const sigma, seeds = 0.3, 3
	exact := average(b.truth)
	ratio := func(stated float64) float64 {
		sum := 0.0
		for seed := range uint64(seeds) {
			sum += math.Log(average(uncertain{wrong{b.truth, sigma, seed}, stated}) / exact)
		}
		return math.Exp(sum / seeds)
	}
	uncertain, certain := ratio(sigma), ratio(0)
	t.Logf("uncertain %.3f, taken for certain %.3f of the average with exact speeds", uncertain, certain)
	if uncertain > 1.05 || uncertain > certain-0.05 {
		t.Errorf("want at most 1.05 and 0.05 less")
	}
}

// uncertain has intervals of a standard deviation.
type uncertain struct {
	perfmodel.Predictor
	sigma float64
}

func (u uncertain) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	p, err := u.Predictor.Predict(ctx, c)
	p.Lo, p.Hi = p.Throughput*math.Exp(-stats.Normal90*u.sigma), p.Throughput*math.Exp(stats.Normal90*u.sigma)
	return p, err
}

// BenchmarkPacerBesideRubick measures the mean completion time of pacer over that of rubick on 20 draws of arrivals of Rubick's
// traces mt and bp, with exact speeds and with speeds that learn. One iteration is enough: -benchtime 1x.
func BenchmarkPacerBesideRubick(b *testing.B) {
	bed := newTestbed(b)
	for _, name := range []string{"mt", "bp"} {
		for _, exact := range []bool{true, false} {
			b.Run(fmt.Sprintf("trace=%s/exact=%v", name, exact), func(b *testing.B) {
				for b.Loop() {
					sum := 0.0
					const draws = 20
					for seed := uint64(100); seed < 100+draws; seed++ {
						jobs := moved(bed.jobs(b, name, 1), seed)
						average := func(policy string) float64 {
							if exact {
								return float64(summarize(bed.runSeed(b, policy, jobs, bed.truth, seed)).AvgJCT)
							}
							return float64(summarize(bed.runLearning(b, policy, jobs, seed)).AvgJCT)
						}
						sum += math.Log(average("pacer")/average("rubick")) / draws
					}
					b.ReportMetric(math.Exp(sum), "of-rubick")
				}
			})
		}
	}
}
