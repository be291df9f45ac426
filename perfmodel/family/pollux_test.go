package family

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// dpConfig is an invented data parallel job with devices on each node as given.
func dpConfig(micro, accum int, nodes ...int) spec.Config {
	c := spec.Config{Model: spec.Model{Name: "toy", Kind: spec.Opaque}, Accelerator: spec.Accelerator{Name: "toychip"}, Shape: spec.NewShape(nodes...)}
	c.Plan = spec.Plan{DP: c.Shape.Total(), MicroBatch: micro, AccumSteps: accum}.Normal()
	return c
}

// dpShapes are placements of up to 16 devices on nodes of 4.
var dpShapes = [][]int{{1}, {2}, {3}, {4}, {1, 1}, {2, 2}, {4, 4}, {4, 4, 4}, {4, 4, 4, 4}}

// polluxTruth is what invented step times are made of.
var polluxTruth = polluxVec{0.05, 0.01, 0.08, 0.006, 0.03, 0.004, 1.6}

// polluxMeasured is what a job of parameters v would have measured.
func polluxMeasured(v *polluxVec, c spec.Config) spec.Measurement {
	p := c.Plan.Normal()
	x := newPolluxPoint(&c, &p)
	t, compute := x.step(v, x.Accum-1)
	m := spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{t.sec}, Source: "invented"}
	m.PhaseSec = map[string]float64{"sync": t.sec - float64(x.Accum)*compute.sec}
	return m
}

func polluxGrid(v *polluxVec, micro, accum []int, shapes ...[]int) (rows []spec.Measurement) {
	for _, s := range shapes {
		for _, m := range micro {
			for _, a := range accum {
				rows = append(rows, polluxMeasured(v, dpConfig(m, a, s...)))
			}
		}
	}
	return rows
}

// worstError returns the largest relative error of f's step times.
func worstError(t *testing.T, f perfmodel.Predictor, rows []spec.Measurement) float64 {
	t.Helper()
	worst := 0.0
	for _, m := range rows {
		p, err := f.Predict(t.Context(), m.Config)
		if err != nil {
			t.Fatal(err)
		}
		sec, lo, hi := p.StepSec(m.Config.Plan.GlobalBatch())
		if lo != sec || hi != sec {
			t.Fatalf("%s: interval %g..%g of a model that has none", m.Config.Plan, lo, hi)
		}
		worst = max(worst, math.Abs(sec/m.MedianStepSec()-1))
	}
	return worst
}

func mustFit(t *testing.T, name string, rows []spec.Measurement) (perfmodel.Fitted, perfmodel.Card) {
	t.Helper()
	f, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	fitted, card, err := f.Fit(t.Context(), perfmodel.Rows(rows))
	if err != nil {
		t.Fatal(err)
	}
	return fitted, card
}

// TestPolluxRecovers: parameters that made the data come back. The penalties
// pull γ to 1 and β/α to 0, so it does so only nearly.
func TestPolluxRecovers(t *testing.T) {
	rows := polluxGrid(&polluxTruth, []int{4, 16, 64}, []int{1, 3}, dpShapes...)
	fitted, card := mustFit(t, "pollux", rows)
	if card.NFit != 3*2*len(dpShapes) || len(card.Warnings) > 0 {
		t.Errorf("card %+v", card)
	}
	for i, p := range polluxParams {
		got := card.Params[p.name]
		if d := math.Abs(got.Value/polluxTruth[i] - 1); d > 0.1 || got.Unit != p.unit {
			t.Errorf("%s: %+v, want %g %s", p.name, got, polluxTruth[i], p.unit)
		}
	}
	unseen := polluxGrid(&polluxTruth, []int{8, 128}, []int{1, 2, 5}, []int{2, 1}, []int{4, 4, 2}, []int{4, 4, 4, 4, 4, 4, 4, 4})
	if e := worstError(t, fitted, unseen); e > 0.05 {
		t.Errorf("worst error on rows not fitted %.3f", e)
	}
}

// TestPolluxWithoutPhases: with one replica measured, synchronization is told
// from step times alone.
func TestPolluxWithoutPhases(t *testing.T) {
	rows := polluxGrid(&polluxTruth, []int{4, 16, 64}, []int{1, 3}, dpShapes...)
	for i := range rows {
		rows[i].PhaseSec = nil
	}
	fitted, _ := mustFit(t, "pollux", rows)
	if e := worstError(t, fitted, rows); e > 0.05 {
		t.Errorf("worst error %.3f", e)
	}
	alone := slices.DeleteFunc(rows, func(m spec.Measurement) bool { return m.Config.Plan.DP == 1 })
	_, _, err := pollux.fit(t.Context(), perfmodel.Rows(alone))
	if !errors.Is(err, perfmodel.ErrTooFewPoints) || !strings.Contains(err.Error(), "alpha_c and beta_c") {
		t.Errorf("no replica alone: %v", err)
	}
}

// TestPolluxPins: what was not measured is as the artifact has it, and said.
func TestPolluxPins(t *testing.T) {
	for _, c := range []struct {
		name   string
		rows   []spec.Measurement
		want   map[string]float64 // parameters
		warned []string
	}{
		{"one row", polluxGrid(&polluxTruth, []int{16}, []int{1}, []int{1}),
			map[string]float64{"alpha_c": 0.105, "alpha_r": 1e-8, "beta_r": 1e-8, "alpha_n": 1.1e-8, "beta_n": 1.1e-8},
			[]string{"rows of one micro-batch", "several replicas on one node", "on several nodes", "more than two replicas"}},
		{"one node", polluxGrid(&polluxTruth, []int{4, 16}, []int{1}, []int{1}, []int{2}, []int{4}),
			nil, []string{"on several nodes"}},
		{"two replicas", polluxGrid(&polluxTruth, []int{4, 16}, []int{1}, []int{1}, []int{2}, []int{1, 1}),
			map[string]float64{"beta_r": 1e-8, "beta_n": 1e-8}, []string{"more than two replicas"}},
		{"a device a node", polluxGrid(&polluxTruth, []int{4, 16}, []int{1}, []int{1}, []int{1, 1}, []int{1, 1, 1}),
			map[string]float64{"alpha_r": 1e-8, "beta_r": 1e-8}, []string{"several replicas on one node"}},
	} {
		_, card := mustFit(t, "pollux", c.rows)
		for name, want := range c.want {
			if got := card.Params[name].Value; math.Abs(got/want-1) > 1e-9 {
				t.Errorf("%s: %s = %g, want %g", c.name, name, got, want)
			}
		}
		if len(card.Warnings) != len(c.warned) {
			t.Errorf("%s: warnings %q, want %q", c.name, card.Warnings, c.warned)
			continue
		}
		for i, w := range c.warned {
			if !strings.Contains(card.Warnings[i], w) {
				t.Errorf("%s: warning %q, want %q", c.name, card.Warnings[i], w)
			}
		}
	}
	_, card := mustFit(t, "pollux", polluxGrid(&polluxTruth, []int{4, 16}, []int{1}, []int{1}, []int{2}, []int{4}))
	if got, want := card.Params["alpha_n"].Value, 1.1*card.Params["alpha_r"].Value; got != want {
		t.Errorf("alpha_n = %g, want %g", got, want)
	}
}

// TestPolluxGradient: the gradient of the objective is that of differences.
func TestPolluxGradient(t *testing.T) {
	rows := polluxRows(polluxGrid(&polluxTruth, []int{4, 64}, []int{1, 3}, dpShapes...))
	rows[3].grad, rows[3].extra = 0, 2
	rapid.Check(t, func(t *rapid.T) {
		var v polluxVec
		for i := range v {
			v[i] = math.Exp(rapid.Float64Range(-7, 0).Draw(t, polluxParams[i].name))
		}
		v[plOverlap] = rapid.Float64Range(1, 9).Draw(t, "γ")
		_, grad := polluxLoss(rows, &v)
		for i := range v {
			up, down, h := v, v, 1e-5*v[i]
			up[i], down[i] = v[i]+h, v[i]-h
			fu, _ := polluxLoss(rows, &up)
			fd, _ := polluxLoss(rows, &down)
			if slope := (fu - fd) / (2 * h); math.Abs(slope-grad[i]) > 1e-4*(1/v[i]+math.Abs(slope)) {
				t.Fatalf("d loss/d %s = %g, differences give %g at %v", polluxParams[i].name, grad[i], slope, v)
			}
		}
	})
}

// dpRefused are configurations no data parallel model has an opinion on.
var dpRefused = map[string]func(*spec.Config){
	"has model parallelism":      func(c *spec.Config) { c.Plan.TP, c.Shape = 2, spec.NewShape(4, 4) },
	"shards or offloads":         func(c *spec.Config) { c.Plan.ZeRO = 2 },
	"is for 4 devices":           func(c *spec.Config) { c.Shape = spec.NewShape(4, 4) },
	"no shape":                   func(c *spec.Config) { c.Shape = spec.Shape{} },
	"not other on toychip":       func(c *spec.Config) { c.Model.Name = "other" },
	"not toy on other":           func(c *spec.Config) { c.Accelerator.Name = "other" },
	"77 tokens":                  func(c *spec.Config) { c.SeqLen = 77 },
	"recompute full":             func(c *spec.Config) { c.Plan.Recompute = spec.RecomputeFull },
	"below 1":                    func(c *spec.Config) { c.Plan.MicroBatch = -1 },
	"asynchronous without param": func(c *spec.Config) { c.Plan.Async = true },
}

func checkRefused(t *testing.T, f perfmodel.Predictor, refused map[string]func(*spec.Config)) {
	t.Helper()
	for want, change := range refused {
		c := dpConfig(8, 1, 4)
		change(&c)
		_, err := f.Predict(t.Context(), c)
		if !errors.Is(err, perfmodel.ErrNotCovered) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestPolluxNotCovered(t *testing.T) {
	fitted, _ := mustFit(t, "pollux", polluxGrid(&polluxTruth, []int{4, 16}, []int{1}, dpShapes...))
	checkRefused(t, fitted, dpRefused)
	checkRefused(t, fitted, map[string]func(*spec.Config){"parameter servers": func(c *spec.Config) { c.Plan.ParamServers = 2 }})
	c := dpConfig(8, 1, 4)
	c.Plan.Precision = spec.BF16 // rows that record no precision are of any
	if _, err := fitted.Predict(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// TestPeersRefuseNothingToFit: no family makes parameters of nothing.
func TestPeersRefuseNothingToFit(t *testing.T) {
	sharded := dpConfig(4, 1, 2)
	sharded.Plan.ZeRO = 3
	doubted := polluxMeasured(&polluxTruth, dpConfig(4, 1, 1))
	doubted.Doubt = "a test says so"
	for _, name := range []string{"pollux", "sia", "optimus"} {
		f, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, rows := range map[string][]spec.Measurement{
			"no rows": nil, "a row in doubt": {doubted}, "a plan without terms": {polluxMeasured(&polluxTruth, sharded)},
		} {
			if _, _, err := f.Fit(t.Context(), perfmodel.Rows(rows)); !errors.Is(err, perfmodel.ErrTooFewPoints) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s of %s: %v", name, what, err)
			}
		}
		other := polluxMeasured(&polluxTruth, dpConfig(4, 1, 1))
		other.Config.Accelerator.Name = "other"
		rows := append(polluxGrid(&polluxTruth, []int{4}, []int{1}, []int{1}), other)
		if _, _, err := f.Fit(t.Context(), perfmodel.Rows(rows)); err == nil || !strings.Contains(err.Error(), "want one job type") {
			t.Errorf("%s of two keys: %v", name, err)
		}
		boom := errors.New("boom")
		_, _, err = f.Fit(t.Context(), func(yield func(spec.Measurement, error) bool) { yield(spec.Measurement{}, boom) })
		if !errors.Is(err, boom) {
			t.Errorf("%s of rows that cannot be read: %v", name, err)
		}
	}
}

// TestPeersKeepTheCommonestJob: rows a form cannot tell apart are not mixed.
func TestPeersKeepTheCommonestJob(t *testing.T) {
	rows := polluxGrid(&polluxTruth, []int{4, 16}, []int{1}, dpShapes...)
	for _, m := range rows[:5] {
		m.Config.SeqLen, m.StepSec = 512, []float64{99}
		rows = append(rows, m)
	}
	for _, name := range []string{"pollux", "sia", "optimus"} {
		fitted, card := mustFit(t, name, rows)
		if card.NLeftOut != 5 || !strings.Contains(strings.Join(card.Warnings, " "), "5 rows that are not of toy on toychip") {
			t.Errorf("%s: %+v", name, card)
		}
		if e := worstError(t, fitted, rows[:2*len(dpShapes)]); e > 0.5 {
			t.Errorf("%s: worst error %.2f: rows of the other job were fitted", name, e)
		}
	}
}

// checkFitted: what a family fitted does not depend on the order of rows and
// survives the disk.
func checkFitted(t *testing.T, name string, rows []spec.Measurement) {
	t.Helper()
	f, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	fitted, card := mustFit(t, name, rows)
	shuffled := slices.Clone(rows)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(rows), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	_, again := mustFit(t, name, shuffled)
	if fmt.Sprint(card) != fmt.Sprint(again) {
		t.Errorf("%s: the card depends on the order of rows:\n%+v\n%+v", name, card, again)
	}
	b, err := fitted.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := f.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		want, err1 := fitted.Predict(t.Context(), m.Config)
		got, err2 := loaded.Predict(t.Context(), m.Config)
		if err1 != nil || err2 != nil || got.Throughput != want.Throughput || got.By != want.By || fmt.Sprint(got.Warnings) != fmt.Sprint(want.Warnings) {
			t.Errorf("%s: %+v, %v came back as %+v, %v", name, want, err1, got, err2)
		}
	}
}

func TestPolluxFitted(t *testing.T) {
	rows := polluxGrid(&polluxTruth, []int{4, 16}, []int{1, 2}, dpShapes...)
	checkFitted(t, "pollux", rows)
	checkFitted(t, "sia", rows)
}

func TestPolluxLoadErrors(t *testing.T) {
	good, _ := mustFit(t, "pollux", polluxGrid(&polluxTruth, []int{4, 16}, []int{1}, dpShapes...))
	b, err := good.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	m := good.(*polluxModel)
	gamma := fmt.Sprintf("%v]", m.Params[plOverlap])
	for _, c := range []struct{ in, want string }{
		{"", "reading a fitted model"},
		{"{}", "alpha_c is 0"},
		{strings.Replace(string(b), gamma, "0.5]", 1), "gamma is 0.5, want 1 to 10"},
	} {
		if _, err := pollux.load([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.in, err, c.want)
		}
	}
}

// TestPolluxProperties: for any parameters within their bounds step times are
// positive and finite, and grow with micro-batch, accumulation and, on several
// nodes, with replicas.
func TestPolluxProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v polluxVec
		for i := range v {
			v[i] = math.Exp(rapid.Float64Range(math.Log(polluxLeast), 6).Draw(t, polluxParams[i].name))
		}
		v[plOverlap] = rapid.Float64Range(1, 10).Draw(t, "γ")
		n := rapid.IntRange(1, 1<<20)
		x := polluxPoint{Nodes: rapid.IntRange(2, 1000).Draw(t, "nodes"), Replicas: n.Draw(t, "replicas") + 1, Micro: n.Draw(t, "micro"), Accum: n.Draw(t, "accum")}
		sec := x.seconds(&v)
		if !(sec > 0) || math.IsInf(sec, 0) {
			t.Fatalf("%+v: %g s", x, sec)
		}
		for _, more := range []polluxPoint{{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}} {
			y := polluxPoint{x.Nodes, x.Replicas + more.Replicas, x.Micro + more.Micro, x.Accum + more.Accum}
			if after := y.seconds(&v); after < sec*(1-1e-12) {
				t.Fatalf("%+v takes %g s, %+v takes %g s", x, sec, y, after)
			}
		}
	})
}

func TestPolluxWarnsOutsideItsRows(t *testing.T) {
	fitted, _ := mustFit(t, "pollux", polluxGrid(&polluxTruth, []int{4, 16}, []int{1}, []int{1}, []int{1, 1}, []int{2, 2}))
	for _, c := range []struct {
		c    spec.Config
		want string
	}{
		{dpConfig(8, 4, 2, 2), ""},
		{dpConfig(64, 1, 1), "micro-batch 64, fitted to 4..16"},
		{dpConfig(8, 1, 3, 3), "6 replicas, fitted to at most 4"},
		{dpConfig(8, 1, 1, 1, 1), "3 nodes, fitted to at most 2"},
		{dpConfig(8, 1, 2), "several replicas on one node"},
	} {
		p, err := fitted.Predict(t.Context(), c.c)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.Warnings); len(p.Warnings) > 1 || (c.want == "") != (len(p.Warnings) == 0) || !strings.Contains(got, c.want) {
			t.Errorf("%s on %s: %s, want %q", c.c.Plan, c.c.Shape, got, c.want)
		}
	}
}

func TestGoodput(t *testing.T) {
	phi, err := GradientNoiseScale(0.5, 4, 32)
	if err != nil || phi != 256 {
		t.Errorf("noise scale %g, %v, want 256", phi, err)
	}
	for _, c := range []struct{ global, initial, phi, want float64 }{
		{32, 32, 256, 1}, {64, 32, 0, 0.5}, {64, 32, 32, 2.0 / 3}, {1 << 20, 32, 1e12, 1},
	} {
		e, err := StatisticalEfficiency(c.global, c.initial, c.phi)
		if err != nil || math.Abs(e-c.want) > 1e-5 {
			t.Errorf("%+v: %g, %v", c, e, err)
		}
		if g, err := Goodput(10, c.global, c.initial, c.phi); err != nil || g != 10*e {
			t.Errorf("goodput %+v: %g, %v", c, g, err)
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range [][3]float64{{16, 32, 1}, {32, 0, 1}, {32, 32, -1}, {nan, 32, 1}, {32, nan, 1}, {32, 32, nan}, {inf, 32, 1}, {64, 32, inf}} {
		if _, err := StatisticalEfficiency(c[0], c[1], c[2]); err == nil {
			t.Errorf("efficiency of %v", c)
		}
	}
	for _, c := range [][3]float64{{0, 1, 1}, {1, -1, 1}, {1, 1, 0}, {nan, 1, 1}, {1e-300, 1e300, 1e300}} {
		if _, err := GradientNoiseScale(c[0], c[1], c[2]); err == nil {
			t.Errorf("noise scale of %v", c)
		}
	}
	for _, thr := range []float64{-1, nan, inf} {
		if _, err := Goodput(thr, 64, 32, 1); err == nil {
			t.Errorf("goodput of throughput %g", thr)
		}
	}
}
