package rubick

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// toyTruth holds the parameters that generate the toy job type's step times.
var toyTruth = vec{rbCompute: 2, rbStack: 1.3, rbFixed: 0.03, rbOptim: 90, rbIntra: 0.4, rbInter: 0.85,
	rbHidden: 0.15, rbUneven: 1.2, rbHostStep: 1e-9, rbHostCopy: 0.25e-9}

func toyRows(configs []spec.Config) []spec.Measurement {
	var out []spec.Measurement
	for _, c := range configs {
		t := newTerms(&c, false)
		out = append(out, perftest.Measured(c, t.seconds(&toyTruth, nil)))
	}
	return out
}

func fitToy(t testing.TB, rows []spec.Measurement) *Model {
	t.Helper()
	f, _, err := fit(context.Background(), perfmodel.Rows(rows))
	if err != nil {
		t.Fatal(err)
	}
	return f.(*Model)
}

// TestRubickRecoversParameters fits times generated from known parameters. Rows have no noise, so the remaining
// error is the pull of the prior: below 10 % for parameters that several rows depend on, below 30 % for the
// rest.
func TestRubickRecoversParameters(t *testing.T) {
	m := fitToy(t, toyRows(perftest.ToyGrid()))
	tolerance := vec{rbCompute: 0.05, rbStack: 0.05, rbFixed: 0.3, rbOptim: 0.3, rbIntra: 0.1, rbInter: 0.1,
		rbHidden: 0.3, rbUneven: 0.1, rbHostStep: 0.1, rbHostCopy: 0.1}
	for a, want := range toyTruth {
		if got := m.post.e[a]; math.Abs(got/want-1) > tolerance[a] {
			t.Errorf("%s = %.4g, want %.4g within %g", priors[a].name, got, want, tolerance[a])
		}
	}
}

// TestRubickPredictsFromEightRows measures eight chosen plans of the toy job
// type and predicts the others.
func TestRubickPredictsFromEightRows(t *testing.T) {
	all := toyRows(perftest.ToyGrid())
	f := Family
	_, card, err := perfmodel.FitKey(t.Context(), f, all, perfmodel.FitOptions{MaxRows: 8})
	if err != nil {
		t.Fatal(err)
	}
	if card.NFit != 8 || card.NHeldOut != len(all)-8 || card.MAPE > 0.05 {
		t.Errorf("fitted %d, held out %d, error %.3f; want 8, %d, at most 0.05", card.NFit, card.NHeldOut, card.MAPE, len(all)-8)
	}
	if len(card.Params) != rbN || card.DataHash == "" {
		t.Errorf("card lists %d parameters, hash %q", len(card.Params), card.DataHash)
	}
}

// TestRubickIntervalsHoldWhatTheyPromise draws job types from the prior, with residuals from the model's
// distribution, and counts how often a 90 % interval of a fit to eight rows contains the others. With 60
// correlated job types of 60 rows, the tolerance is about three standard deviations.
func TestRubickIntervalsHoldWhatTheyPromise(t *testing.T) {
	configs := perftest.ToyGrid()
	chosen := Choose(configs, 8)
	terms := make([]configTerms, len(configs))
	for i := range configs {
		terms[i] = newTerms(&configs[i], false)
	}
	residual, ok := gp.NewCholesky(len(configs), func(i, j int) float64 { return covarianceOf(&terms[i], &terms[j], i == j) })
	if !ok {
		t.Fatal("residual covariance is not positive definite")
	}
	rng := rand.New(rand.NewPCG(7, 7))
	inside, total := 0, 0
	for range 60 {
		at, sd := priorOf(&terms[0])
		for a := range at {
			at[a] += sd[a] * rng.NormFloat64()
		}
		e, z := at.natural(), make([]float64, len(configs))
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		residual.Correlate(z)
		rows := make([]spec.Measurement, len(configs))
		for i, c := range configs {
			rows[i] = perftest.Measured(c, terms[i].seconds(&e, nil)*math.Exp(z[i]))
		}
		var fit []spec.Measurement
		for _, i := range chosen {
			fit = append(fit, rows[i])
		}
		m := fitToy(t, fit)
		for i, r := range rows {
			if slices.Contains(chosen, i) {
				continue
			}
			p, err := m.Predict(t.Context(), r.Config)
			if err != nil {
				t.Fatal(err)
			}
			total++
			if _, lo, hi := p.StepSec(32); lo <= r.StepSec[0] && r.StepSec[0] <= hi {
				inside++
			}
		}
	}
	if c := float64(inside) / float64(total); c < 0.84 || c > 0.96 {
		t.Errorf("90 %% intervals hold %.3f of %d times", c, total)
	}
}

// TestRubickOrderOfRowsDoesNotMatter compares stored bytes.
func TestRubickOrderOfRowsDoesNotMatter(t *testing.T) {
	rows := toyRows(perftest.ToyGrid())[:20]
	want, err := fitToy(t, rows).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for range 5 {
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got, _ := fitToy(t, rows).MarshalBinary(); string(got) != string(want) {
			t.Fatalf("another fit of the same rows:\n%s\nwas\n%s", got, want)
		}
	}
}

func TestRubickLoadRestoresPredictions(t *testing.T) {
	m := fitToy(t, toyRows(perftest.ToyGrid())[:12])
	b, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range perftest.ToyGrid() {
		p, err1 := m.Predict(t.Context(), c)
		q, err2 := again.Predict(t.Context(), c)
		p.Warnings, q.Warnings = nil, nil
		if err1 != nil || err2 != nil || fmt.Sprint(p) != fmt.Sprint(q) {
			t.Fatalf("%s: %v %v, loaded %v %v", c.Plan, p, err1, q, err2)
		}
	}
}

func TestRubickLoadRefusesWhatItDidNotWrite(t *testing.T) {
	b, err := fitToy(t, toyRows(perftest.ToyGrid())[:4]).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	for name, bad := range map[string]string{
		"empty":              "",
		"truncated":          good[:len(good)/2],
		"other version":      strings.Replace(good, `"version":1`, `"version":2`, 1),
		"no rows":            `{"version":1,"log_params":{},"rows":[]}`,
		"negative time":      strings.Replace(good, `"sec":`, `"sec":-`, 1),
		"missing parameter":  strings.Replace(good, `"fixed":`, `"fixd":`, 1),
		"absurd parameter":   strings.Replace(good, `"fixed":`, `"fixed":1e9,"was":`, 1),
		"rows of two models": strings.Replace(good, `"name":"toy"`, `"name":"other"`, 1),
	} {
		if _, err := Load([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "rubick: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func FuzzRubickLoad(f *testing.F) {
	b, err := fitToy(f, toyRows(perftest.ToyGrid())[:3]).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Load(b)
		if err != nil {
			return
		}
		r := m.(*Model)
		if p, err := m.Predict(context.Background(), r.rows[0].Config); err == nil && !(p.Throughput > 0) {
			t.Errorf("throughput %g", p.Throughput)
		}
	})
}

func TestRubickNeedsTwoConfigurations(t *testing.T) {
	one := toyRows(perftest.ToyGrid()[:1])
	doubted := toyRows(perftest.ToyGrid()[:2])
	for i := range doubted {
		doubted[i].Doubt = "test"
	}
	oom := toyRows(perftest.ToyGrid()[1:2])
	oom[0].Outcome, oom[0].StepSec = spec.OOM, nil
	for name, rows := range map[string][]spec.Measurement{
		"none":                 nil,
		"one":                  one,
		"one, repeated":        append(slices.Clone(one), one[0], one[0]),
		"one and one that oom": append(slices.Clone(one), oom...),
		"all in doubt":         doubted,
	} {
		_, _, err := fit(t.Context(), perfmodel.Rows(rows))
		if !errors.Is(err, perfmodel.ErrTooFewPoints) {
			t.Errorf("%s: error %v, want ErrTooFewPoints", name, err)
		}
	}
	if _, _, err := fit(t.Context(), perfmodel.Rows(one)); err == nil || !strings.Contains(err.Error(), "fixed cost cannot be separated") {
		t.Errorf("error %v does not name what is unidentifiable", err)
	}
}

func TestRubickRefusesRowsOfTwoJobTypes(t *testing.T) {
	rows := toyRows(perftest.ToyGrid()[:2])
	rows[1].Config.Model.Name = "other"
	if _, _, err := fit(t.Context(), perfmodel.Rows(rows)); err == nil || !strings.Contains(err.Error(), "toy on toychip and of other on toychip") {
		t.Errorf("error %v", err)
	}
}

// TestRubickFitsAnything: extreme or missing values give an error or finite predictions.
func TestRubickFitsAnything(t *testing.T) {
	for name, change := range map[string]func(*spec.Config){
		"opaque model": func(c *spec.Config) { c.Model = spec.Model{Name: "toy", Kind: spec.Opaque, ParamCount: 25e6} },
		"no figures at all": func(c *spec.Config) {
			c.Model = spec.Model{Name: "toy"}
			c.Accelerator = spec.Accelerator{Name: "toychip"}
		},
		"no links":   func(c *spec.Config) { c.Link = spec.Link{} },
		"no shape":   func(c *spec.Config) { c.Shape = spec.Shape{} },
		"huge model": func(c *spec.Config) { c.Model.ParamCount = 1e300 },
	} {
		rows := toyRows(perftest.ToyGrid()[:9])
		for i := range rows {
			change(&rows[i].Config)
		}
		f, _, err := fit(t.Context(), perfmodel.Rows(rows))
		if err != nil {
			if name != "huge model" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		for _, r := range rows {
			if p, err := f.Predict(t.Context(), r.Config); err == nil && !(p.Throughput > 0 && p.Lo > 0 && p.Hi < math.Inf(1)) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
}

func TestRubickTimesFarFromThePrior(t *testing.T) {
	for _, factor := range []float64{1e-6, 1e-3, 1e3, 1e6} {
		rows := toyRows(perftest.ToyGrid()[:12])
		for i := range rows {
			rows[i].StepSec[0] *= factor
			rows[i].Config.Accelerator = spec.Accelerator{Name: "device of unknown rates"} // no time is impossible on it
		}
		m := fitToy(t, rows)
		for _, r := range rows {
			p, err := m.Predict(t.Context(), r.Config)
			if err != nil {
				t.Fatal(err)
			}
			if sec, _, _ := p.StepSec(32); math.Abs(math.Log(sec/r.StepSec[0])) > 1 {
				t.Errorf("x%g: %s: %g s, measured %g s", factor, r.Config.Plan, sec, r.StepSec[0])
			}
		}
	}
}

// TestRubickReadsUnrecordedMicroBatches: times of pipelines fed sample by sample, with plans that record one
// micro-batch.
func TestRubickReadsUnrecordedMicroBatches(t *testing.T) {
	for _, split := range []bool{false, true} {
		var rows []spec.Measurement
		for _, d := range [][3]int{{1, 1, 8}, {1, 2, 4}, {1, 4, 2}, {2, 2, 2}, {1, 8, 1}, {4, 1, 2}} {
			c := perftest.Toy(spec.Plan{DP: d[0], TP: d[1], PP: d[2], MicroBatch: 32 / d[0], AccumSteps: 1}, 8)
			terms := newTerms(&c, split)
			rows = append(rows, perftest.Measured(c, terms.seconds(&toyTruth, nil)))
		}
		if m := fitToy(t, rows); m.post.split != split {
			t.Errorf("fed sample by sample: read %v, is %v", m.post.split, split)
		}
	}
}

func TestRubickPredictRefusesAndWarns(t *testing.T) {
	m := fitToy(t, toyRows([]spec.Config{perftest.Toy(spec.Plan{DP: 2, MicroBatch: 16}, 2), perftest.Toy(spec.Plan{DP: 4, MicroBatch: 8}, 4)}))
	other := perftest.Toy(spec.Plan{DP: 2, MicroBatch: 16}, 2)
	other.Accelerator.Name = "elsewhere"
	if _, err := m.Predict(t.Context(), other); !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), "toy on toychip") {
		t.Errorf("another accelerator: %v", err)
	}
	if _, err := m.Predict(t.Context(), perftest.Toy(spec.Plan{DP: 2, MicroBatch: 16}, 4)); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("plan for 2 on 4 devices: %v", err)
	}
	p, err := m.Predict(t.Context(), perftest.Toy(spec.Plan{DP: 16, MicroBatch: 2, ZeRO: 2, Offload: spec.OffloadOptimizer}, 8, 8))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"offload", "ZeRO", "several nodes", "twice the devices"} {
		if !slices.ContainsFunc(p.Warnings, func(e error) bool { return strings.Contains(e.Error(), want) }) {
			t.Errorf("no warning of %s in %v", want, p.Warnings)
		}
	}
	near, err := m.Predict(t.Context(), perftest.Toy(spec.Plan{DP: 2, MicroBatch: 16}, 2))
	if err != nil || len(near.Warnings) != 0 || near.By != "rubick: toy on toychip" {
		t.Errorf("a fitted row: %+v, %v", near, err)
	}
	if least := math.Hypot(math.Log(near.Hi/near.Lo), 2*unseenHalf*math.Sqrt(float64(len(p.Warnings)))); math.Log(p.Hi/p.Lo) < least {
		t.Errorf("log interval of an extrapolation %g, of a fitted row %g: want at least %g", math.Log(p.Hi/p.Lo), math.Log(near.Hi/near.Lo), least)
	}
}

// anyConfig draws a configuration of the toy job type.
func anyConfig(t *rapid.T) spec.Config {
	pow := func(name string, most int) int { return 1 << rapid.IntRange(0, most).Draw(t, name) }
	p := spec.Plan{DP: pow("dp", 4), TP: pow("tp", 3), PP: pow("pp", 3), MicroBatch: pow("mb", 4), AccumSteps: pow("ga", 4),
		ZeRO: rapid.IntRange(0, 3).Draw(t, "zero")}
	p.Recompute = rapid.SampledFrom([]spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull}).Draw(t, "recompute")
	p.Offload = rapid.SampledFrom([]spec.Offload{spec.OffloadNone, spec.OffloadOptimizer}).Draw(t, "offload")
	return perftest.Toy(p, spec.Packed(p.Devices(), pow("node", 3)).PerNode()...)
}

func anyParams(t *rapid.T) vec {
	var v vec
	for i, p := range priors {
		v[i] = math.Log(p.median) + p.sd*rapid.Float64Range(-3, 3).Draw(t, p.name)
	}
	return v.natural()
}

// TestRubickStepTimeIsMonotone: for any parameters, times are positive and finite, and more recomputation or
// half the bandwidth is never faster.
func TestRubickStepTimeIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, e := anyConfig(t), anyParams(t)
		seconds := func(c spec.Config) float64 { r := newTerms(&c, false); return r.seconds(&e, nil) }
		base := seconds(c)
		if !(base > 0) || math.IsInf(base, 0) {
			t.Fatalf("%s: %g s", c.Plan, base)
		}
		slower := map[string]func(*spec.Config){
			"half the links inside":  func(c *spec.Config) { c.Link.IntraBps /= 2 },
			"half the links between": func(c *spec.Config) { c.Link.InterBps /= 2 },
			"half the memory rate":   func(c *spec.Config) { c.Accelerator.MemBps /= 2 },
			"half the peak":          func(c *spec.Config) { c.Accelerator.BF16 /= 2 },
			"full recomputation":     func(c *spec.Config) { c.Plan.Recompute = spec.RecomputeFull },
			"twice the micro-batch":  func(c *spec.Config) { c.Plan.MicroBatch *= 2 },
		}
		if c.Plan.Recompute == spec.RecomputeNone {
			slower["selective recomputation"] = func(c *spec.Config) { c.Plan.Recompute = spec.RecomputeSelective }
		}
		for what, change := range slower {
			d := c
			change(&d)
			if s := seconds(d); s < base*(1-1e-12) {
				t.Errorf("%s on %s: %s: %g s, was %g s", c.Plan, c.Shape.Devices, what, s, base)
			}
		}
	})
}

// TestRubickGradient compares with central differences; their error at this step is 1e-6 for terms of order 1.
func TestRubickGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, e := anyConfig(t), anyParams(t)
		r := newTerms(&c, false)
		var grad vec
		r.seconds(&e, &grad)
		for a := range e {
			const h = 1e-5
			up, down := e, e
			up[a] *= math.Exp(h)
			down[a] *= math.Exp(-h)
			want := (math.Log(r.seconds(&up, nil)) - math.Log(r.seconds(&down, nil))) / (2 * h)
			if math.Abs(grad[a]-want) > 1e-6 {
				t.Errorf("%s: d ln T / d ln %s = %g, numerically %g", c.Plan, priors[a].name, grad[a], want)
			}
		}
	})
}

// TestRubickFittedPredictionsAreFinite predicts arbitrary configurations from a small fit.
func TestRubickFittedPredictionsAreFinite(t *testing.T) {
	m := fitToy(t, toyRows(perftest.ToyGrid())[:10])
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		p, err := m.Predict(context.Background(), c)
		if err != nil || !(0 < p.Lo && p.Lo < p.Throughput && p.Throughput < p.Hi && p.Hi < math.Inf(1)) {
			t.Errorf("%s: %+v, %v", c.Plan, p, err)
		}
	})
}

func TestExposedSync(t *testing.T) {
	for _, c := range []struct{ s, h, want float64 }{
		{0, 1, 0}, {2, 0, 2}, {1, 1, math.Pow(2, 0.25) - 1}, {3, 4, math.Pow(81+256, 0.25) - 4}, {1e-200, 1, 0}, {1e200, 0, 1e200},
	} {
		if got, _, _ := exposedSync(c.s, c.h); math.Abs(got-c.want) > 1e-12*max(c.want, 1) {
			t.Errorf("exposedSync(%g, %g) = %g, want %g", c.s, c.h, got, c.want)
		}
	}
}

// TestRounds: the bubble fractions (p-1)/m and (p-1)/(v·m) of Narayanan et al.,
// SC 2021, section 2.2.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		pp, vp, ga int
		want       float64
	}{{1, 1, 7, 7}, {4, 1, 8, 8.0 / 4 * (1 + 3.0/8)}, {4, 2, 8, 8.0 / 4 * (1 + 3.0/16)}, {8, 1, 1, 1}} {
		p := spec.Plan{PP: c.pp, VirtualStages: c.vp, AccumSteps: c.ga}.Normal()
		if got := rounds(p); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("pp=%d vp=%d ga=%d: %g rounds, want %g", c.pp, c.vp, c.ga, got, c.want)
		}
	}
}

func TestRubickLayout(t *testing.T) {
	for _, c := range []struct {
		shape      string
		pp, tp, dp int
		inNode     bool
		straddling float64
		uneven     bool
	}{
		{"8", 1, 8, 1, true, 0, false},
		{"8+8", 2, 8, 1, true, 0, false},
		{"8+8", 2, 4, 2, true, 0, false},
		{"8+8", 1, 8, 2, false, 0, false},
		{"4+4", 1, 8, 1, false, 1, false},       // one group on two nodes
		{"6+6", 3, 4, 1, false, 1.0 / 3, false}, // ranks 4..7 on two nodes
		{"6+6+6+6", 6, 4, 1, false, 2.0 / 6, false},
		{"5+3", 1, 1, 8, false, 0, true},
		{"4+2+2", 1, 1, 8, false, 0, false}, // unequal, but all even
		{"", 1, 1, 16, false, 0, false},     // taken as 8+8
	} {
		p := spec.Plan{PP: c.pp, TP: c.tp, DP: c.dp}.Normal()
		g := newLayout(spec.Shape{Devices: c.shape}, p)
		if g.stageInNode(p) != c.inNode || math.Abs(g.straddling(p)-c.straddling) > 1e-12 || g.uneven != c.uneven {
			t.Errorf("%s on %q: in node %v, straddling %g, uneven %v; want %v, %g, %v", p, c.shape,
				g.stageInNode(p), g.straddling(p), g.uneven, c.inNode, c.straddling, c.uneven)
		}
	}
}

func BenchmarkRubickFit(b *testing.B) {
	for _, n := range []int{8, 64} {
		rows := toyRows(perftest.ToyGrid())[:n]
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := fit(context.Background(), perfmodel.Rows(rows)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRubickPredict(b *testing.B) {
	grid := perftest.ToyGrid()
	for _, n := range []int{8, 64} {
		m := fitToy(b, toyRows(grid[:n]))
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := m.Predict(context.Background(), grid[i%n]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRubickChoose(b *testing.B) {
	grid := perftest.ToyGrid()
	for b.Loop() {
		Choose(grid, 8)
	}
}

// TestRubickWarnsFarFromTheRows changes one thing about a fitted row at a time.
func TestRubickWarnsFarFromTheRows(t *testing.T) {
	plan := spec.Plan{DP: 8, MicroBatch: 8, ZeRO: 2}
	m := fitToy(t, toyRows([]spec.Config{perftest.Toy(plan, 8), perftest.Toy(plan, 4, 4), perftest.Toy(spec.Plan{DP: 16, MicroBatch: 4, ZeRO: 2}, 8, 8)}))
	for name, tc := range map[string]struct {
		change func(*spec.Config)
		want   string // "" = no warning
	}{
		"a fitted row":      {func(*spec.Config) {}, ""},
		"fp16 for bf16":     {func(c *spec.Config) { c.Plan.Precision = spec.FP16 }, ""},
		"no precision":      {func(c *spec.Config) { c.Plan.Precision = "" }, ""},
		"fp8":               {func(c *spec.Config) { c.Plan.Precision = spec.FP8 }, "fp8 is not in any fitted row"},
		"tf32":              {func(c *spec.Config) { c.Plan.Precision = spec.TF32 }, "tf32 is not in any fitted row"},
		"ZeRO-3":            {func(c *spec.Config) { c.Plan.ZeRO = 3 }, "ZeRO-3 is not in any fitted row"},
		"twice the batch":   {func(c *spec.Config) { c.Plan.MicroBatch = 16 }, ""},
		"large micro-batch": {func(c *spec.Config) { c.Plan.MicroBatch = 17 }, "more than twice the micro-batch of any"},
		"small micro-batch": {func(c *spec.Config) { c.Plan.MicroBatch = 1 }, "less than half the micro-batch of any"},
		"long":              {func(c *spec.Config) { c.SeqLen = 8192 }, "more than twice the tokens per sample"},
		"short":             {func(c *spec.Config) { c.SeqLen = 128 }, "less than half the tokens per sample"},
		"few devices":       {func(c *spec.Config) { c.Plan.DP, c.Shape = 2, spec.NewShape(2) }, "less than half the devices"},
		"many devices":      {func(c *spec.Config) { c.Plan.DP, c.Shape = 40, spec.Packed(40, 10) }, "more than twice the devices"},
		"many nodes":        {func(c *spec.Config) { c.Shape = spec.Packed(8, 1) }, "more than twice the nodes"},
	} {
		c := perftest.Toy(plan, 8)
		tc.change(&c)
		p, err := m.Predict(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.Warnings); tc.want == "" && len(p.Warnings) > 0 || !strings.Contains(got, tc.want) {
			t.Errorf("%s: warnings %v, want %q", name, p.Warnings, tc.want)
		}
	}
}

func TestRubickRefusesPlans(t *testing.T) {
	m := fitToy(t, toyRows(perftest.ToyGrid())[:12])
	perftest.CheckImpossible(t, "rubick", m)
	perftest.CheckServersRefused(t, "rubick", m)
}

// TestRubickLeavesImpossibleRowsOut: they do not affect the choice or the fit.
func TestRubickLeavesImpossibleRowsOut(t *testing.T) {
	good := toyRows(perftest.ToyGrid())[:20]
	var bad []spec.Measurement
	for _, p := range perftest.Impossible {
		c := perftest.Toy(p, 1)
		c.Shape = spec.Shape{}
		bad = append(bad, perftest.Measured(c, 1))
	}
	var all []spec.Config
	for _, m := range append(slices.Clone(bad), good...) {
		all = append(all, m.Config)
	}
	want := configsAt(all[len(bad):], Choose(all[len(bad):], 8))
	if got := configsAt(all, Choose(all, 8)); !slices.Equal(got, want) {
		t.Errorf("chose %v, without impossible candidates %v", got, want)
	}
	if got := Choose(all[:len(bad)+2], 4); len(got) != 4 || got[2] < len(bad) {
		t.Errorf("of two sound candidates in %d chose %v", len(bad)+2, got)
	}
	f, card, err := fit(t.Context(), perfmodel.Rows(append(bad, good...)))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := f.MarshalBinary()
	if plain, _ := fitToy(t, good).MarshalBinary(); string(got) != string(plain) {
		t.Error("impossible rows change the fit")
	}
	if card.NLeftOut != len(bad) || !slices.ContainsFunc(card.Warnings, func(w string) bool { return strings.Contains(w, "left out one row") }) {
		t.Errorf("left out %d, warnings %q", card.NLeftOut, card.Warnings)
	}
}

// TestRubickKeepsOnlyWhatItCanLoad: every fitted model can be loaded from disk.
func TestRubickKeepsOnlyWhatItCanLoad(t *testing.T) {
	for _, factor := range []float64{1e-300, 1e-100, 1e-20, 1, 1e20, 1e100, 1e300} {
		rows := toyRows(perftest.ToyGrid()[:12])
		for i := range rows {
			rows[i].StepSec[0] *= factor
			rows[i].Config.Accelerator = spec.Accelerator{Name: "device of unknown rates"} // no time is impossible on it
		}
		f, _, err := fit(t.Context(), perfmodel.Rows(rows))
		if err != nil {
			if !errors.Is(err, perfmodel.ErrNotFinite) || factor == 1 {
				t.Errorf("x%g: %v", factor, err)
			}
			continue
		}
		b, err := f.MarshalBinary()
		if err == nil {
			_, err = Load(b)
		}
		if err != nil {
			t.Errorf("x%g: fitted, but %v", factor, err)
		}
	}
}
