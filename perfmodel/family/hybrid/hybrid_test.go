package hybrid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// hybridRows returns steps of one job type with factor times the prior's step time, and some noise.
func hybridRows(t testing.TB, n int, factor, noise float64) []spec.Measurement {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	var out []spec.Measurement
	for _, dp := range []int{1, 2, 4, 8, 16} {
		for _, tp := range []int{1, 2, 4, 8} {
			for _, pp := range []int{1, 2, 4} {
				for _, mb := range []int{1, 2} {
					c := perftest.GPT(spec.Plan{DP: dp, TP: tp, PP: pp, MicroBatch: mb, AccumSteps: 8, ZeRO: 1, Precision: spec.BF16})
					c.Framework = "Megatron-LM@2021"
					p, err := Shipped().Predict(context.Background(), c)
					if err != nil {
						t.Fatal(err)
					}
					sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
					out = append(out, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", StepSec: []float64{sec * factor * math.Exp(noise*rng.NormFloat64())}})
				}
			}
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:n]
}

func BenchmarkHybridFit(b *testing.B) {
	rows := hybridRows(b, 100, 1.2, 0.03)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Shipped().Family().Fit(context.Background(), perfmodel.Rows(rows)); err != nil {
			b.Fatal(err)
		}
	}
}

// manyRows returns n different steps of one job type. Their factor on the prior's step time varies with the
// micro-batch.
func manyRows(t testing.TB, n int) (out []spec.Measurement) {
	t.Helper()
	for i := range n {
		p := spec.Plan{DP: 1 << (i % 4), TP: 1 << (i / 4 % 4), MicroBatch: 1 + i/16%32, AccumSteps: 1 + i/512, ZeRO: 1, Precision: spec.BF16}
		c := perftest.GPT(p)
		c.Framework = "Megatron-LM@2021"
		pred, err := Shipped().Predict(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := pred.StepSec(c.Plan.GlobalBatch())
		factor := 1.2 * math.Exp(0.1*math.Sin(math.Log2(float64(p.MicroBatch))))
		out = append(out, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", StepSec: []float64{sec * factor}})
	}
	return out
}

// TestHybridOfThousandsOfRows: fitting many times the usual number of rows takes seconds, since no matrix of
// rows x rows is built, and still learns their common error.
func TestHybridOfThousandsOfRows(t *testing.T) {
	n := 5000
	if testing.Short() {
		n = gp.ExactRows + 100
	}
	rows := manyRows(t, n+100)
	f, _, err := Shipped().Family().Fit(t.Context(), perfmodel.Rows(rows[:n]))
	if err != nil {
		t.Fatal(err)
	}
	if rest := f.(*Model).base.residual; len(rest.At) != n || rest.Chol.Size() > 0 {
		t.Errorf("the process of %d rows has a matrix of %d rows", len(rest.At), rest.Chol.Size())
	}
	if e := meanError(t, f, rows[n:]); e > 0.02 {
		t.Errorf("mean error of rows left out %.3f, want less than what the factor varies by", e)
	}
	for _, m := range rows[n:] {
		if sec, lo, hi := secondsOf(t, f, m.Config); !(lo < sec && sec < hi && hi < 2*lo) {
			t.Fatalf("%s: %g s in [%g, %g]", m.Config.Plan, sec, lo, hi)
		}
	}
}

// limitedContext is a context that is cancelled after a number of calls of Err.
type limitedContext struct {
	context.Context
	asks *int
}

func (a limitedContext) Err() error {
	if *a.asks--; *a.asks < 0 {
		return context.Canceled
	}
	return nil
}

// TestHybridFitIsCancelled: a fit checks its context between rows, steps, kernels and left-out rows, and
// returns at the first error.
func TestHybridFitIsCancelled(t *testing.T) {
	rows := manyRows(t, gp.ExactRows+50)
	fit := func(asks int) (left int, err error) {
		_, _, err = Shipped().Family().Fit(limitedContext{context.Background(), &asks}, perfmodel.Rows(rows))
		return asks, err
	}
	const plenty = 1 << 20
	left, err := fit(plenty)
	if err != nil {
		t.Fatal(err)
	}
	all := plenty - left
	if all < 3*len(rows)+10 {
		t.Errorf("asked %d times of %d rows", all, len(rows))
	}
	for _, asks := range []int{0, 1, len(rows), 2*len(rows) + 1, 2*len(rows) + 5, all - len(rows) - 1, all - 1} {
		if left, err := fit(asks); !errors.Is(err, context.Canceled) || left < -1 {
			t.Errorf("cancelled after %d of %d times asked: %v, asked %d times more", asks, all, err, -left-1)
		}
	}
}

func TestShippedPriorIsTrained(t *testing.T) {
	if _, err := ReadPrior(priorJSON, analytic.Shipped()); err != nil {
		t.Fatal(err, "; go run ./bench/prior DIR perfmodel/family")
	}
	if n := analytic.Shipped().Training.Rows; n < 500 {
		t.Errorf("trained on %d rows", n)
	}
}

func secondsOf(t testing.TB, p perfmodel.Predictor, c spec.Config) (sec, lo, hi float64) {
	t.Helper()
	out, err := p.Predict(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out.StepSec(c.Plan.GlobalBatch())
}

// meanError returns the mean error over rows that the predictor was not fitted to.
func meanError(t testing.TB, p perfmodel.Predictor, rows []spec.Measurement) float64 {
	t.Helper()
	sum := 0.0
	for _, m := range rows {
		sec, _, _ := secondsOf(t, p, m.Config)
		sum += math.Abs(sec/m.MedianStepSec() - 1)
	}
	return sum / float64(len(rows))
}

func condition(t testing.TB, rows []spec.Measurement) *Model {
	t.Helper()
	h, err := Shipped().Condition(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return h.(*Model)
}

func TestHybridWithoutRowsIsThePrior(t *testing.T) {
	h := condition(t, nil)
	for _, m := range hybridRows(t, 20, 1, 0) {
		got, lo, hi := secondsOf(t, h, m.Config)
		want, wantLo, wantHi := secondsOf(t, Shipped(), m.Config)
		if got != want || lo != wantLo || hi != wantHi {
			t.Fatalf("%s: %g s in [%g, %g], the prior says %g in [%g, %g]", m.Config.Plan, got, lo, hi, want, wantLo, wantHi)
		}
	}
}

// TestHybridLearnsFromEachRow: on a machine a third slower than the prior predicts, each row reduces the error.
func TestHybridLearnsFromEachRow(t *testing.T) {
	rows := hybridRows(t, 100, 1.33, 0.03)
	held, last := rows[60:], math.Inf(1)
	for _, c := range []struct {
		rows int
		most float64
	}{{0, 0.27}, {1, 0.19}, {5, 0.10}, {30, 0.055}, {60, 0.045}} {
		e := meanError(t, condition(t, rows[:c.rows]), held)
		if e > c.most || e > 1.1*last {
			t.Errorf("%d rows: mean error %.3f, want at most %.3f, and hardly more than %.3f with fewer", c.rows, e, c.most, last)
		}
		last = e
	}
}

// TestHybridRecoversEffects: a fit to rows generated with known effects of a site recovers them.
func TestHybridRecoversEffects(t *testing.T) {
	truth := map[int]float64{0: -0.12, 2: -0.25, 3: -0.35} // compute, links, network: exponents of e
	moves := map[int][]string{0: {"gemm", "gemm Ampere"}, 2: {"ring share", "ring share Ampere"}, 3: {"network share"}}
	l := analytic.Layout{Frameworks: []string{"megatron made"}, Sites: []analytic.Site{{Framework: "megatron made", Accelerator: "A"}}}
	before := analytic.Shipped().DistributionOf(&l).Mean
	x := slices.Clone(before)
	for e, v := range truth {
		x[l.SiteAt(l.Sites[0])+e] = v
	}
	ph := analytic.Shipped().PhysicsAt(&l, x)
	var rows []spec.Measurement
	for _, dp := range []int{1, 2, 4, 8, 16} {
		for _, tp := range []int{1, 2, 4, 8} {
			for _, mb := range []int{1, 4} {
				for _, ga := range []int{1, 8} {
					c := perftest.GPT(spec.Plan{DP: dp, TP: tp, MicroBatch: mb, AccumSteps: ga, ZeRO: 1, Precision: spec.BF16})
					c.Framework, c.Link.InterBps = perftest.Stack("megatron made")+" tp=none overlap=none launch=fused attention=unfused", 20e9
					p, err := ph.Predict(&c, "truth")
					if err != nil {
						t.Fatal(err)
					}
					sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
					rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", StepSec: []float64{sec}})
				}
			}
		}
	}
	m := condition(t, rows).base
	for e, want := range truth {
		// Effects of the framework and of the site add up, since all rows are of one site.
		got := m.x[m.layout.FrameworkAt("megatron made")+e] + m.x[m.layout.SiteAt(analytic.Site{Framework: "megatron made", Accelerator: "A"})+e]
		for i, name := range analytic.ParamNames() {
			if slices.Contains(moves[e], name) {
				got += m.x[i] - before[i]
			}
		}
		if math.Abs(got-want) > 0.08 {
			t.Errorf("%s: %+.3f, want %+.3f", moves[e][0], got, want)
		}
	}
	if e := meanError(t, &Model{prior: Shipped(), base: m}, rows); e > 0.01 {
		t.Errorf("the rows themselves are off %.3f", e)
	}
}

func TestHybridHoldsWildRowsDown(t *testing.T) {
	rows := hybridRows(t, 60, 1.2, 0.02)
	clean := condition(t, rows[:30])
	wild := slices.Clone(rows[:30])
	wild[7].StepSec = []float64{12 * wild[7].MedianStepSec()}
	spoiled := condition(t, wild)
	if a, b := meanError(t, clean, rows[30:]), meanError(t, spoiled, rows[30:]); b > a+0.03 {
		t.Errorf("one wild row of 30 takes the mean error from %.3f to %.3f", a, b)
	}
}

// TestHybridDoesNotDependOnOrder: neither the order of rows, nor their files, nor copies of some change a fit to step times.
func TestHybridDoesNotDependOnOrder(t *testing.T) {
	all := hybridRows(t, 60, 1.1, 0.05)
	rng := rand.New(rand.NewPCG(3, 5))
	for range 10 {
		var rows []spec.Measurement
		for _, i := range rng.Perm(len(all))[:1+rng.IntN(25)] {
			rows = append(rows, all[i])
		}
		want, err := condition(t, rows).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		moved := append(slices.Clone(rows), rows[:rng.IntN(len(rows)+1)]...)
		for i := range moved {
			moved[i].Source, moved[i].Origin = fmt.Sprint("file", i%3), fmt.Sprint("line ", i)
		}
		rng.Shuffle(len(moved), func(i, j int) { moved[i], moved[j] = moved[j], moved[i] })
		if got, err := condition(t, moved).MarshalBinary(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d rows, with copies %d in another order from other files, give another fit (%v)", len(rows), len(moved), err)
		}
	}
}

// TestHybridMemoryDoesNotDependOnOrder: of rows with peaks the order does not change a fit, also if rows of several
// sequence lengths have the same peak and plan, and no origin.
func TestHybridMemoryDoesNotDependOnOrder(t *testing.T) {
	rows := slices.Concat(hybridRows(t, 12, 1.1, 0.05), hybridRows(t, 12, 1.2, 0.05), hybridRows(t, 12, 1.3, 0.05))
	for i := range rows {
		rows[i].Config.SeqLen = 1024 << (i / 12)
		rows[i].PeakBytes = 24 << 30
	}
	want, err := condition(t, rows).MarshalBinary()
	if err != nil || !bytes.Contains(want, []byte(`"memory"`)) {
		t.Fatalf("%v, want a fit with memory", err)
	}
	rng := rand.New(rand.NewPCG(4, 5))
	for range 5 {
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got, err := condition(t, rows).MarshalBinary(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("another order gives another fit (%v)", err)
		}
	}
}

func TestHybridLoadRestoresPredictions(t *testing.T) {
	rows := hybridRows(t, 40, 1.25, 0.04)
	h := condition(t, rows[:20])
	b, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Shipped().Family().Load(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		want, err := h.Predict(context.Background(), m.Config)
		if err != nil {
			t.Fatal(err)
		}
		got, err := back.Predict(context.Background(), m.Config)
		if err != nil || got.Throughput != want.Throughput || got.Lo != want.Lo || got.Hi != want.Hi {
			t.Fatalf("%s: %+v, %v, before %+v", m.Config.Plan, got, err, want)
		}
	}
}

// smallRecord returns the smallest stored model that can be loaded: one site, one row, no effect except x[0].
func smallRecord() fileRecord {
	l := analytic.Layout{Frameworks: []string{"F"}, Sites: []analytic.Site{{Framework: "F", Accelerator: "A"}}}
	r := fileRecord{Version: recordVersion, Prior: analytic.Shipped().Training.Hash, Params: analytic.ParamNames(), Frameworks: l.Frameworks,
		Sites: [][2]string{{"F", "A"}}, X: make([]float64, l.Size()), Widths: make([]analytic.Widths, 1), Scale: 1.5, Kernel: gp.Untaught().Mean,
		Most: 1, Points: []pointRecord{{E: 0.2}}}
	r.X[0] = 0.1
	return r
}

func TestHybridLoadRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*fileRecord){
		"nothing":                 func(*fileRecord) {},
		"scale of zero":           func(r *fileRecord) { r.Scale = 0 },
		"negative scale":          func(r *fileRecord) { r.Scale = -1 },
		"scale beyond all bounds": func(r *fileRecord) { r.Scale = 1e300 },
		"narrower than all rows":  func(r *fileRecord) { r.Most = 0.5 },
		"kernel without spread":   func(r *fileRecord) { r.Kernel.Spread = 0 },
		"kernel of huge spread":   func(r *fileRecord) { r.Kernel.Spread = 1e200 },
		"kernel that grows":       func(r *fileRecord) { r.Kernel.Weights[3] = -1 },
		"kernel without reach":    func(r *fileRecord) { r.Kernel.Weights[3] = 1e90 },
		"kernel of no steepness":  func(r *fileRecord) { r.Kernel.Weights[3] = 0 },
		"huge residual":           func(r *fileRecord) { r.Points[0].E = 1e308 },
		"negative noise":          func(r *fileRecord) { r.Points[0].SD = -0.1 },
		"huge noise":              func(r *fileRecord) { r.Points[0].SD = 1e200 },
		"point out of the world":  func(r *fileRecord) { r.Points[0].Num[2] = -1e300 },
		"huge effect":             func(r *fileRecord) { r.X[3] = 800 },
		"effect missing":          func(r *fileRecord) { r.X = r.X[1:] },
	} {
		r := smallRecord()
		spoil(&r)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Shipped().Family().Load(b)
		if name == "nothing" && err != nil {
			t.Fatal(err)
		}
		if name != "nothing" && (err == nil || !strings.Contains(err.Error(), "fit again")) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

func FuzzHybridLoad(f *testing.F) {
	b, err := json.Marshal(smallRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{}`))
	c := hybridRows(f, 1, 1, 0)[0].Config
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Shipped().Family().Load(b)
		if err != nil {
			return
		}
		if p, err := h.Predict(context.Background(), c); err == nil && (!(p.Throughput > 0) || math.IsInf(p.Throughput, 0) || math.IsNaN(p.Lo) || math.IsNaN(p.Hi)) {
			t.Fatalf("%+v", p)
		}
	})
}

func TestPriorRoundTrip(t *testing.T) {
	b, err := json.Marshal(Shipped())
	if err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(analytic.Shipped())
	if err != nil {
		t.Fatal(err)
	}
	consts, err := analytic.ReadPrior(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadPrior(b, consts)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range hybridRows(t, 10, 1, 0) {
		a, _, _ := secondsOf(t, Shipped(), m.Config)
		b, _, _ := secondsOf(t, back, m.Config)
		if math.Abs(a/b-1) > 1e-6 {
			t.Errorf("%s: %g s, after a round trip %g", m.Config.Plan, a, b)
		}
	}
	for _, bad := range []string{"", "{}", `{"version":1}`, strings.Replace(string(c), `"belief":"`, `"belief":"AAAA`, 1)} {
		if _, err := analytic.ReadPrior([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "analytic: ") {
			t.Errorf("%.30q is read: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "{}", `{"version":1}`, strings.Replace(string(b), `"hash":"`, `"hash":"0`, 1)} {
		if _, err := ReadPrior([]byte(bad), consts); err == nil || !strings.HasPrefix(err.Error(), "hybrid: ") {
			t.Errorf("%.30q is read: %v", bad, err)
		}
	}
}

// TestHybridWarnsOutsideOfItsRows: far from all rows the interval is wider, and a warning names the dimensions.
func TestHybridWarnsOutsideOfItsRows(t *testing.T) {
	h := condition(t, hybridRows(t, 60, 1.2, 0.02))
	near := hybridRows(t, 1, 1, 0)[0].Config
	width := func(c spec.Config) float64 { sec, _, hi := secondsOf(t, h, c); return math.Log(hi / sec) }
	for name, change := range map[string]func(*spec.Config){
		"sequence":     func(c *spec.Config) { c.SeqLen = 65536 },
		"hidden width": func(c *spec.Config) { c.Model.Hidden, c.Model.Heads = 32768, 256 },
		"precision":    func(c *spec.Config) { c.Plan.Precision = spec.FP32 },
		"cp":           func(c *spec.Config) { c.Plan.CP = 8; c.Shape = spec.Packed(c.Plan.Devices(), 8) },
	} {
		far := near
		change(&far)
		p, err := h.Predict(context.Background(), far)
		if err != nil || len(p.Warnings) == 0 || !strings.Contains(p.Warnings[len(p.Warnings)-1].Error(), name) {
			t.Errorf("%s: %v, %v", name, p.Warnings, err)
		}
		if a, b := width(near), width(far); b <= a {
			t.Errorf("%s: half width %.3f, near the rows %.3f", name, b, a)
		}
	}
	if p, err := h.Predict(context.Background(), near); err != nil || len(p.Warnings) != 0 {
		t.Errorf("among the rows: %v, %v", p.Warnings, err)
	}
}

func TestHybridFitRefuses(t *testing.T) {
	f := Shipped().Family()
	if _, _, err := f.Fit(context.Background(), perfmodel.Rows(nil)); !errors.Is(err, perfmodel.ErrTooFewPoints) {
		t.Errorf("no rows: %v", err)
	}
	rows := hybridRows(t, 2, 1, 0)
	rows[1].Config.Model.Name = "other"
	if _, _, err := f.Fit(context.Background(), perfmodel.Rows(rows)); err == nil || !strings.Contains(err.Error(), "other") {
		t.Errorf("two models: %v", err)
	}
}

// TestHybridMetamorphic checks relations that hold for any constants.
func TestHybridMetamorphic(t *testing.T) {
	h := condition(t, hybridRows(t, 40, 1.1, 0.05))
	for name, p := range map[string]perfmodel.Predictor{"prior": Shipped(), "hybrid": h} {
		rapid.Check(t, func(t *rapid.T) {
			pow := func(name string, most int) int { return 1 << rapid.IntRange(0, most).Draw(t, name) }
			c := perftest.GPT(spec.Plan{DP: pow("dp", 4), TP: pow("tp", 3), MicroBatch: pow("mb", 3), AccumSteps: 4 * pow("ga", 3),
				ZeRO: rapid.IntRange(0, 1).Draw(t, "zero"), Precision: spec.BF16})
			sec := func(c spec.Config) float64 {
				out, err := p.Predict(context.Background(), c)
				if err != nil || !(out.Lo > 0) || !(out.Lo < out.Throughput) || !(out.Throughput < out.Hi) || math.IsInf(out.Hi, 0) {
					t.Fatalf("%s: %+v, %v", name, out, err)
				}
				s, _, _ := out.StepSec(c.Plan.GlobalBatch())
				return s
			}
			base := sec(c)
			twice := c
			twice.Plan.DP, twice.Plan.AccumSteps = 2*c.Plan.DP, c.Plan.AccumSteps/2
			twice.Shape = spec.Packed(twice.Plan.Devices(), 8)
			if got := sec(twice); got > 1.02*base && twice.Plan.Devices() <= 8 {
				t.Fatalf("%s: %s takes %g s, with half the devices for the same work %g", name, twice.Plan, got, base)
			}
			fast := c
			fast.Link.IntraBps, fast.Link.InterBps = 2*c.Link.IntraBps, 2*c.Link.InterBps
			if got := sec(fast); got > base*(1+1e-9) || got < base/2*(1-1e-9) {
				t.Fatalf("%s: %s takes %g s, with links twice as fast %g", name, c.Plan, base, got)
			}
		})
	}
}

// TestHybridBelievesRowsThatAgree: for any machine speed, rows that agree with each other are fitted and lie
// inside their predicted interval.
func TestHybridBelievesRowsThatAgree(t *testing.T) {
	rows := hybridRows(t, 12, 1, 0)
	for _, factor := range []float64{0.3, 0.5, 0.8, 1.25, 1.6, 2, 3, 5} {
		for _, n := range []int{1, 2, 4} {
			slow := slices.Clone(rows)
			for i := range slow {
				slow[i].StepSec = []float64{factor * rows[i].MedianStepSec()}
			}
			h := condition(t, slow[:n])
			for _, m := range slow[:n] {
				if sec, lo, hi := secondsOf(t, h, m.Config); m.MedianStepSec() < lo || m.MedianStepSec() > hi {
					t.Errorf("%d rows x %g: %g s measured, %g in [%g, %g] predicted", n, factor, m.MedianStepSec(), sec, lo, hi)
				}
			}
			if e := meanError(t, h, slow[4:]); n == 4 && e > 0.12 {
				t.Errorf("%d rows x %g: mean error %.3f on others", n, factor, e)
			}
		}
	}
}

// TestHybridIgnoresImpossibleRows: rows faster than the devices do not change an answer.
func TestHybridIgnoresImpossibleRows(t *testing.T) {
	rows := hybridRows(t, 20, 1.2, 0.02)
	mixed := slices.Clone(rows[:10])
	for _, m := range rows[10:] {
		m.StepSec = []float64{m.MedianStepSec() / 1000}
		mixed = append(mixed, m)
	}
	want, _, _ := secondsOf(t, condition(t, rows[:10]), rows[15].Config)
	if got, _, _ := secondsOf(t, condition(t, mixed), rows[15].Config); got != want {
		t.Errorf("%g s beside rows a thousand times too fast, %g s without them", got, want)
	}
}

// TestHybridOutliers: a row that takes ten or five times as long as the others predict is named with its factor; rows
// that are all twice as slow, and those of a model that the others say little about, are not.
func TestHybridOutliers(t *testing.T) {
	rows := hybridRows(t, 20, 1.3, 0.02)
	if got := condition(t, rows).Outliers(); len(got) > 0 {
		t.Errorf("good rows: %v", got)
	}
	if got := condition(t, hybridRows(t, 20, 2, 0.02)).Outliers(); len(got) > 0 {
		t.Errorf("rows twice as slow: %v", got)
	}
	for _, factor := range []float64{10, 5} {
		some := slices.Clone(rows)
		m := &some[7]
		m.Origin, m.StepSec = "the bad one", []float64{m.MedianStepSec() * factor}
		got := condition(t, some).Outliers()
		if len(got) != 1 || got[0].Row.Origin != m.Origin || math.Abs(math.Log(got[0].Factor/factor)) > 0.3 {
			t.Errorf("one row times %g: %v", factor, got)
		}
		_, card, err := Shipped().Family().Fit(t.Context(), perfmodel.Rows(some))
		if err != nil || !slices.ContainsFunc(card.Warnings, func(w string) bool { return strings.Contains(w, "the other rows predict") }) {
			t.Errorf("one row times %g: the card warns of %q, %v", factor, card.Warnings, err)
		}
	}
}

// TestDomainWarn: warnings follow those before, also after those of other dimensions, and change neither.
func TestDomainWarn(t *testing.T) {
	d := domainOf(nil)
	one, two := []error{errors.New("one")}, []error{errors.New("two"), errors.New("three")}
	for _, before := range [][]error{one, two, one, nil, two, two} {
		got := d.warn(before, 1<<3)
		if len(got) != len(before)+1 || !slices.Equal(got[:len(before)], before) || !strings.Contains(got[len(before)].Error(), "extrapolated in tp:") {
			t.Errorf("after %v: %v", before, got)
		}
	}
	if got := d.warn(one, 0); len(got) != 1 {
		t.Errorf("nothing outside: %v", got)
	}
}

// TestTrainLearnsKernels: a prior has the kernels of its rows.
func TestTrainLearnsKernels(t *testing.T) {
	rows := append(sourceRowsOf(t, "a", 20, 1.3), sourceRowsOf(t, "b", 20, 0.8)...)
	if k := trained(t, rows).kernels.Mean; k == untrained().kernels.Mean || !k.Valid() {
		t.Errorf("kernel %+v", k)
	}
}
