package hybrid

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/design"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

func hybridGains(t testing.TB, have []spec.Measurement, space []spec.Config) []perfmodel.Gain {
	t.Helper()
	gains, err := Shipped().gain(context.Background(), have, space, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(gains) != len(space) {
		t.Fatalf("%d gains for %d configurations", len(gains), len(space))
	}
	for i, g := range gains {
		if !(g.HalfWidth >= 0 && g.HalfWidth < 100 && g.Fall >= 0 && g.Fall <= 100) {
			t.Errorf("%s on %s: %+v", space[i].Plan, space[i].Shape.Devices, g)
		}
	}
	return gains
}

func configsOf(rows []spec.Measurement) (out []spec.Config) {
	for i := range rows {
		out = append(out, rows[i].Config)
	}
	return out
}

// TestHybridGainHalfWidthIsThatOfPredictions: HalfWidth equals that of predictions, and is close to that of the
// posterior from which Fall is computed. Without rows the shipped widths hold for any site, so only the order
// of magnitude agrees.
func TestHybridGainHalfWidthIsThatOfPredictions(t *testing.T) {
	rows := hybridRows(t, 60, 1.1, 0.03)
	space := configsOf(rows)
	for _, c := range []struct {
		n   int
		off float64 // factor
	}{{0, 2.5}, {1, 1.6}, {2, 1.6}, {8, 1.4}, {30, 1.4}} {
		h := condition(t, rows[:c.n])
		g := newSpaceGain(t.Context(), h, perfmodel.MergeRepeats(rows[:c.n]), design.NewConfigs(space, nil))
		if err := g.addPosterior(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ratios []float64
		for k, cfg := range g.configs {
			p, err := h.Predict(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			half := math.Log(p.Hi/p.Lo) / 2
			if math.Abs(g.half[k]-half) > 1e-12 {
				t.Errorf("%d rows: %s: half width %g, of the prediction %g", c.n, cfg.Plan, g.half[k], half)
			}
			ratios = append(ratios, half/(stats.Normal90*math.Sqrt(g.view.Own[k]+design.RunNoise*design.RunNoise)))
		}
		slices.Sort(ratios)
		mid := ratios[len(ratios)/2]
		t.Logf("%d rows: half width over the belief's %.2f, from %.2f to %.2f", c.n, mid, ratios[0], ratios[len(ratios)-1])
		if mid > c.off || mid < 1/c.off {
			t.Errorf("%d rows: half widths are %.2f of what is believed", c.n, mid)
		}
	}
}

// TestHybridGainNarrowsWhatItSays: conditioning the posterior on a candidate, as the choice of several
// measurements does, reduces the half width by its Fall.
func TestHybridGainNarrowsWhatItSays(t *testing.T) {
	rows := hybridRows(t, 40, 1.1, 0.03)
	for _, n := range []int{0, 1, 6} {
		g := newSpaceGain(t.Context(), condition(t, rows[:n]), perfmodel.MergeRepeats(rows[:n]), design.NewConfigs(configsOf(rows), nil))
		if err := g.addPosterior(t.Context()); err != nil {
			t.Fatal(err)
		}
		weight, falls := g.targetWeights(), g.Falls(g)
		for c := range g.configs {
			if g.Measured[c] {
				continue
			}
			after := g.view.Clone()
			after.Measure(c)
			fell := meanHalfAfter(&g.view, weight, -1) - meanHalfAfter(&after, weight, -1)
			if math.Abs(fell-falls[c]) > 1e-9 || fell <= 0 {
				t.Errorf("%d rows: %s: falls by %g, said %g", n, g.configs[c].Plan, fell, falls[c])
			}
		}
	}
}

// TestHybridGainRecovers draws jobs at a new site from the prior. It measures rows of each in order of gain and
// in random order, and predicts the other rows. Over all jobs and the first five rows, the geometric mean error
// in order of gain is at most 0.93 of that in random order (0.86 was measured).
func TestHybridGainRecovers(t *testing.T) {
	const jobs, most = 12, 5
	rows := hybridRows(t, 100, 1, 0)
	for i := range rows {
		rows[i].Config.Framework = perftest.Stack("new")
	}
	chosen, shuffled := 0.0, 0.0
	for seed := range uint64(jobs) {
		truth := drawnSite(t, rows, seed)
		order := rand.New(rand.NewPCG(seed, 3)).Perm(len(rows))
		var have, random []spec.Measurement
		for k := range most {
			have = append(have, truth[perftest.LargestFall(hybridGains(t, have, configsOf(rows)))])
			random = append(random, truth[order[k]])
			chosen += math.Log(meanError(t, condition(t, have), truth)) / (jobs * most)
			shuffled += math.Log(meanError(t, condition(t, random), truth)) / (jobs * most)
		}
	}
	ratio := math.Exp(chosen - shuffled)
	t.Logf("error %.3f in order of gain, %.3f in random order: %.2f", math.Exp(chosen), math.Exp(shuffled), ratio)
	if !(ratio <= 0.93) {
		t.Error("rows of greatest gain teach too little")
	}
}

// drawnSite returns rows with step times of a site with effects drawn from the prior of new sites, and 2 % noise.
func drawnSite(t testing.TB, rows []spec.Measurement, seed uint64) []spec.Measurement {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	spreads := []float64{0.08, 0.13, 0.15, 0.30, 0.30, 0.40} // of the effects
	p := Shipped().consts
	l := analytic.Layout{}
	l.Add(rows)
	x := p.DistributionOf(&l).Mean
	first := l.Size() - len(spreads)*(len(l.Frameworks)+len(l.Sites))
	for k := first; k < len(x); k++ {
		x[k] = 2 * spreads[(k-first)%len(spreads)] * math.Sqrt(0.5) * rng.NormFloat64()
	}
	m := p.PhysicsAt(&l, x)
	out := slices.Clone(rows)
	for i := range out {
		pred, err := m.Predict(&out[i].Config, "truth")
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := pred.StepSec(out[i].Config.Plan.GlobalBatch())
		out[i].StepSec = []float64{sec * math.Exp(0.02*rng.NormFloat64())}
	}
	return out
}

func TestHybridGainDoesNotDependOnOrder(t *testing.T) {
	rows := hybridRows(t, 40, 1.1, 0.05)
	for _, n := range []int{0, 1, 3, 12} {
		perftest.CheckGainsInAnyOrder(t, hybridGains, rows[:n], configsOf(rows), 1)
	}
}

// TestHybridGainOfRepeats: measured configurations and unusable rows have no gain.
func TestHybridGainOfRepeats(t *testing.T) {
	rows := hybridRows(t, 30, 1.1, 0.03)
	space, have := configsOf(rows), rows[:7]
	spelled := have[1].Config
	spelled.SeqLen = spelled.Seq() // the default, written out
	space = append(space, spelled)
	gains := hybridGains(t, have, space)
	for i, g := range gains {
		if known := i < len(have) || i == len(rows); (g.Fall == 0) != known {
			t.Errorf("%s, measured %v, teaches %g", space[i].Plan, known, g.Fall)
		}
	}
	oom, doubted := rows[10], rows[11]
	oom.Outcome, oom.StepSec = spec.OOM, nil
	doubted.Doubt = "test"
	for i, g := range hybridGains(t, append(slices.Clone(have), have[0], oom, doubted), space) {
		if g != gains[i] {
			t.Fatalf("%s: %+v, with rows that say nothing %+v", space[i].Plan, gains[i], g)
		}
	}
}

// TestHybridGainOfWanted: if only some intervals count, the Fall is theirs, whether or not they can be measured. How much
// one row tells of two others depends on the two, so half widths are means over pairs.
func TestHybridGainOfWanted(t *testing.T) {
	rows := hybridRows(t, 60, 1.1, 0.03)
	have, space := rows[:6], configsOf(rows[6:40])
	others := configsOf(rows[50:58])
	for name, sets := range map[string][][]spec.Config{"of others": slices.Collect(slices.Chunk(others, 2)), "of the space": {space[3:4]}} {
		var now, afterBest, afterLeast, fall float64
		for _, wanted := range sets {
			gains, err := Shipped().gain(t.Context(), have, space, wanted)
			if err != nil || len(gains) != len(space) {
				t.Fatalf("%d gains for %d configurations, %v", len(gains), len(space), err)
			}
			half := func(rows []spec.Measurement) (sum float64) {
				h := condition(t, rows)
				for _, c := range wanted {
					p, err := h.Predict(t.Context(), c)
					if err != nil {
						t.Fatal(err)
					}
					sum += p.HalfWidth() / float64(len(wanted))
				}
				return sum
			}
			best := perftest.LargestFall(gains)
			least := slices.IndexFunc(gains, func(g perfmodel.Gain) bool {
				return g.Fall == slices.MinFunc(gains, func(a, b perfmodel.Gain) int { return cmp.Compare(a.Fall, b.Fall) }).Fall
			})
			after := func(c int) float64 { return half(append(slices.Clone(have), rows[6+c])) }
			now, afterBest, afterLeast, fall = now+half(have), afterBest+after(best), afterLeast+after(least), fall+gains[best].Fall
		}
		if !(afterBest < 0.9*now && afterBest < 0.9*afterLeast && fall < now) {
			t.Errorf("%s, sums over %d sets: half width %.3f, after the row of the largest fall (%.3f) %.3f, of the least %.3f", name, len(sets), now, fall, afterBest, afterLeast)
		}
	}
}

// TestHybridGainOfJobsWithoutAShape: plans of a job with only a batch size, on its own devices and with
// parameter servers.
func TestHybridGainOfJobsWithoutAShape(t *testing.T) {
	var space []spec.Config
	for _, servers := range []int{0, 2} {
		for _, dp := range []int{1, 2, 4, 8} {
			for _, mb := range []int{8, 32, 128} {
				c := perftest.Toy(spec.Plan{DP: dp, MicroBatch: mb, ParamServers: servers}, dp)
				c.Model = spec.Model{Name: "toy", Kind: spec.Opaque}
				space = append(space, c)
			}
		}
	}
	for _, n := range []int{0, 1, 5} {
		var have []spec.Measurement
		for i := range n {
			have = append(have, perftest.Measured(space[i], 0.1+0.01*float64(space[i].Plan.MicroBatch)))
		}
		gains := hybridGains(t, have, space)
		for i, g := range gains {
			if g.HalfWidth == 0 || (g.Fall == 0) != (i < n) {
				t.Errorf("%d rows: %s: %+v", n, space[i].Plan, g)
			}
		}
		if i := perftest.LargestFall(gains); n > 0 && space[i].Plan.ParamServers == 0 {
			t.Errorf("%d rows without servers: %s teaches most", n, space[i].Plan)
		}
	}
}

func TestHybridGainRefuses(t *testing.T) {
	rows := hybridRows(t, 4, 1, 0)
	perftest.CheckGainErrors(t, Shipped().gain, rows, configsOf(rows))
}

// TestHybridGainOfAbsurdFigures: extreme values cause no panic and no result that is not finite.
func TestHybridGainOfAbsurdFigures(t *testing.T) {
	for name, change := range map[string]func(*spec.Config){
		"no figures": func(c *spec.Config) {
			c.Model = spec.Model{Name: "toy"}
			c.Accelerator = spec.Accelerator{Name: "toychip"}
		},
		"opaque model":      func(c *spec.Config) { c.Model = spec.Model{Name: "toy", Kind: spec.Opaque, ParamCount: 25e6} },
		"no links":          func(c *spec.Config) { c.Link = spec.Link{} },
		"beyond all bounds": func(c *spec.Config) { c.Model.ParamCount = math.MaxFloat64 },
		"not a number":      func(c *spec.Config) { c.Model.ParamCount, c.Link.IntraBps = math.NaN(), math.NaN() },
		"instant":           func(c *spec.Config) { c.Accelerator.BF16 = math.Inf(1) },
		"impossible": func(c *spec.Config) {
			c.Plan, c.Shape = perftest.Impossible[0], spec.Shape{}
		},
	} {
		for _, n := range []int{0, 1, 4, 9} {
			space := perftest.ToyGrid()[:12]
			for i := range space {
				if i%2 == 0 {
					change(&space[i])
				}
			}
			for i, g := range hybridGains(t, guessedRows(t, perftest.ToyGrid()[20:20+n]), space) {
				if i%2 == 1 && g.HalfWidth == 0 {
					t.Errorf("%s, %d rows: %s: no half width", name, n, space[i].Plan)
				}
			}
		}
	}
}

func BenchmarkHybridGain(b *testing.B) {
	for _, n := range []int{160, 500, 5000} {
		for _, rows := range []int{0, 4, 100} {
			space := perftest.GainGrid(n)
			have := guessedRows(b, space[:rows])
			b.Run(fmt.Sprintf("space=%d/rows=%d", n, rows), func(b *testing.B) {
				for b.Loop() {
					if _, err := Shipped().gain(context.Background(), have, space, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// guessedRows returns rows with the step times of the analytic model.
func guessedRows(t testing.TB, configs []spec.Config) (rows []spec.Measurement) {
	t.Helper()
	for _, c := range configs {
		parts, err := (&analytic.Model{}).Explain(c)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, perftest.Measured(c, parts.Total()))
	}
	return rows
}
