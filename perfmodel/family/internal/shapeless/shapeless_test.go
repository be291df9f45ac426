package shapeless

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// jobConfig returns n replicas with batch samples each, perNode of them on a node.
func jobConfig(model, device string, n, perNode, batch int) spec.Config {
	return spec.Config{
		Model:       spec.Model{Name: model, Kind: spec.Opaque, ParamCount: 25e6},
		Plan:        spec.Plan{DP: n, MicroBatch: batch}.Normal(),
		Accelerator: spec.Accelerator{Name: device},
		Shape:       spec.Packed(n, perNode),
		Link:        spec.Link{IntraBps: 15e9, InterBps: 6e9},
		Framework:   "test",
	}
}

func serversConfig(model string, workers, servers, batch int) spec.Config {
	c := jobConfig(model, "gpu", workers, 1, batch)
	c.Plan.ParamServers, c.Shape = servers, spec.Shape{}
	return c
}

// jobTruth returns a form's constants, with effects of the model and the site.
func jobTruth(f *form, model, site int) []float64 {
	p := make([]float64, len(f.params))
	for i, q := range f.params {
		p[i] = math.Log(q.median)
	}
	if f == serversForm {
		p[psFixed], p[psSync] = p[psFixed]+0.7*float64(model), p[psSync]-0.6*float64(model)
		return p
	}
	p[arSample] += 0.8*float64(model) - 0.5*float64(site)
	p[arLaunch] += 0.3 * float64(model)
	p[arSync] += 0.4*float64(model) + 0.9*float64(site)
	p[arNode] -= 0.6 * float64(site)
	return p
}

func jobMeasured(c spec.Config, p []float64, noise float64, rng *rand.Rand) spec.Measurement {
	form, x := formOf(&c)
	y, _ := form.logTime(&x, p, nil)
	return spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{math.Exp(y + noise*rng.NormFloat64())}, Source: "test"}
}

var jobSizes = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}

// jobGrid returns the rows of one invented model at one invented site.
func jobGrid(model, site int, noise float64) []spec.Measurement {
	rng := rand.New(rand.NewPCG(uint64(model), uint64(site)))
	var out []spec.Measurement
	for _, n := range jobSizes {
		for _, batch := range []int{4, 16, 64} {
			c := jobConfig(fmt.Sprint("model", model), fmt.Sprint("gpu", site), n, 4, batch)
			out = append(out, jobMeasured(c, jobTruth(allReduceForm, model, site), noise, rng))
		}
	}
	return out
}

func serversGrid(model int, noise float64) []spec.Measurement {
	rng := rand.New(rand.NewPCG(uint64(model), 9))
	var out []spec.Measurement
	for w := 1; w <= 10; w++ {
		for p := 1; p <= 10; p++ {
			c := serversConfig(fmt.Sprint("model", model), w, p, (64+w-1)/w)
			out = append(out, jobMeasured(c, jobTruth(serversForm, model, 0), noise, rng))
		}
	}
	return out
}

// jobTrained returns a prior of all invented cells except those for which without returns true.
func jobTrained(t testing.TB, without func(model, site int) bool) *Prior {
	t.Helper()
	var rows []spec.Measurement
	for model := range 4 {
		for site := range 3 {
			if !without(model, site) {
				rows = append(rows, jobGrid(model, site, 0.02)...)
			}
		}
		if !without(model, -1) {
			rows = append(rows, serversGrid(model, 0.02)...)
		}
	}
	p, err := Train(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func jobErrors(t testing.TB, f *Fitted, rows []spec.Measurement) (ape []float64, inside float64) {
	t.Helper()
	for _, m := range rows {
		y, sd, err := f.predict(&m.Config)
		if err != nil {
			t.Fatal(err)
		}
		e := math.Log(m.MedianStepSec()) - y
		ape = append(ape, math.Abs(math.Expm1(-e)))
		if math.Abs(e) < 1.645*sd {
			inside += 1 / float64(len(rows))
		}
	}
	return ape, inside
}

// TestShapelessGradients compares derivatives with differences.
func TestShapelessGradients(t *testing.T) {
	points := map[*form][]formPoint{}
	for _, c := range []spec.Config{
		jobConfig("m", "d", 1, 4, 8), jobConfig("m", "d", 3, 4, 1), jobConfig("m", "d", 14, 4, 300),
		serversConfig("m", 1, 1, 32), serversConfig("m", 7, 3, 5), serversConfig("m", 9, 24, 5),
	} {
		for _, accum := range []int{1, 4} {
			c.Plan.AccumSteps = accum
			form, x := formOf(&c)
			points[form] = append(points[form], x)
		}
	}
	for form, xs := range points {
		p := jobTruth(form, 1, 1)
		for _, x := range xs {
			grad := make([]float64, len(p))
			y, shares := form.logTime(&x, p, grad)
			if s := shares[0] + shares[1]; math.Abs(s-1) > 1e-9 {
				t.Errorf("%s at %+v: shares %v", form.name, x, shares)
			}
			for k := range p {
				q := slices.Clone(p)
				q[k] += 1e-6
				moved, _ := form.logTime(&x, q, nil)
				if d := (moved - y) / 1e-6; math.Abs(d-grad[k]) > 1e-4 {
					t.Errorf("%s at %+v: d by %s %g, want %g", form.name, x, form.params[k].name, grad[k], d)
				}
			}
		}
	}
}

// TestShapelessStepByHand computes one step of each form from its equation.
func TestShapelessStepByHand(t *testing.T) {
	p := slices.Repeat([]float64{-logLimit}, arParams)
	p[arFixed], p[arSample], p[arOverlap] = math.Log(0.1), math.Log(0.01), 0
	p[arSync], p[arRing], p[arLog] = 0, math.Log(0.4), math.Log(0.05)
	x := formPoint{batch: 20, accum: 3, devices: 4, nodes: 1, perNode: 4, volume: 4, inside: 0.5, between: 1}
	// Tc = 0.3; Ts = 4·0.5·0.4·3/4 + 2·0.05·2 = 0.8; γ = 2.
	want := 2*0.3 + math.Hypot(0.3, 0.8)
	if y, _ := allReduceForm.logTime(&x, p, nil); math.Abs(math.Exp(y)-want) > 1e-6 {
		t.Errorf("all-reduce: %g s, want %g", math.Exp(y), want)
	}
	p = slices.Repeat([]float64{-logLimit}, psParams)
	p[psFixed], p[psSample], p[psSync], p[psServer], p[psPull] = math.Log(0.1), math.Log(0.01), 0, math.Log(0.6), math.Log(0.3)
	p[psUneven+1] = 5 * math.Log(1.5) // three servers
	x = formPoint{batch: 20, accum: 1, devices: 4, nodes: 1, perNode: 4, servers: 3, volume: 4}
	// 0.3 + 2·(0.6 + 0.3·4)·1.5/3.
	if y, _ := serversForm.logTime(&x, p, nil); math.Abs(math.Exp(y)-2.1) > 1e-6 {
		t.Errorf("servers: %g s, want 2.1", math.Exp(y))
	}
	x.servers = 1000 // more than have their own unevenness
	if y, _ := serversForm.logTime(&x, p, nil); math.Abs(math.Exp(y)-0.3036) > 1e-6 {
		t.Errorf("a thousand servers: %g s, want 0.3036", math.Exp(y))
	}
}

// TestShapelessHelpsFromNoRowOn: the cell is not in the prior; more rows predict better, and a few rows are not
// worse than none.
func TestShapelessHelpsFromNoRowOn(t *testing.T) {
	prior := jobTrained(t, func(model, site int) bool { return model == 1 && site == 1 })
	all := jobGrid(1, 1, 0.02)
	shuffled := slices.Clone(all)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	last := math.Inf(1)
	for _, c := range []struct {
		rows int
		most float64
	}{{0, 0.06}, {1, 0.06}, {5, 0.04}, {24, 0.035}} {
		f, err := prior.Fit(context.Background(), all[0].Config, shuffled[:c.rows])
		if err != nil {
			t.Fatal(err)
		}
		ape, inside := jobErrors(t, f, shuffled[24:])
		mape, _ := perfmodel.ErrorSummary(ape)
		t.Logf("%d rows: %.1f %%, %.0f %% inside", c.rows, 100*mape, 100*inside)
		if mape > c.most || mape > last+0.01 {
			t.Errorf("%d rows: %.1f %%, want at most %.0f %% and no more than with fewer", c.rows, 100*mape, 100*c.most)
		}
		if inside < 0.8 {
			t.Errorf("%d rows: %.0f %% inside 90 %% intervals", c.rows, 100*inside)
		}
		last = mape
	}
}

// TestShapelessStrangers: neither the model nor the site is in the prior, and both differ from those in it.
func TestShapelessStrangers(t *testing.T) {
	prior := jobTrained(t, func(int, int) bool { return false })
	all := jobGrid(7, 6, 0.02)
	perm := rand.New(rand.NewPCG(7, 8)).Perm(len(all))
	var rows []spec.Measurement
	for _, i := range perm {
		rows = append(rows, all[i])
	}
	last := math.Inf(1)
	for _, n := range []int{0, 4, 8, 20} {
		f, err := prior.Fit(context.Background(), rows[0].Config, rows[:n])
		if err != nil {
			t.Fatal(err)
		}
		ape, _ := jobErrors(t, f, rows[20:])
		mape, _ := perfmodel.ErrorSummary(ape)
		t.Logf("%d rows: %.1f %%", n, 100*mape)
		if mape > last {
			t.Errorf("%d rows: %.1f %%, with fewer %.1f %%", n, 100*mape, 100*last)
		}
		last = mape
	}
	if last > 0.1 {
		t.Errorf("20 rows: %.1f %%, want at most 10 %%", 100*last)
	}
}

func TestShapelessServersFromTenRows(t *testing.T) {
	prior := jobTrained(t, func(model, site int) bool { return model == 2 && site < 0 })
	all := serversGrid(2, 0.02)
	perm := rand.New(rand.NewPCG(5, 6)).Perm(len(all))
	var seen, rest []spec.Measurement
	for i, at := range perm {
		if i < 10 {
			seen = append(seen, all[at])
		} else {
			rest = append(rest, all[at])
		}
	}
	f, err := prior.Fit(context.Background(), all[0].Config, seen)
	if err != nil {
		t.Fatal(err)
	}
	ape, _ := jobErrors(t, f, rest)
	if mape, _ := perfmodel.ErrorSummary(ape); mape > 0.05 {
		t.Errorf("%.1f %%, want at most 5 %%", 100*mape)
	}
}

// TestShapelessWildRows: a few rows that are wrong by a factor do not affect predictions of others.
func TestShapelessWildRows(t *testing.T) {
	prior := jobTrained(t, func(model, site int) bool { return model == 1 && site == 1 })
	rows := jobGrid(1, 1, 0.02)
	for _, i := range []int{4, 13, 22} {
		rows[i].StepSec = []float64{5 * rows[i].MedianStepSec()}
	}
	f, err := prior.Fit(context.Background(), rows[0].Config, rows)
	if err != nil {
		t.Fatal(err)
	}
	ape, _ := jobErrors(t, f, jobGrid(1, 1, 0))
	if mape, _ := perfmodel.ErrorSummary(ape); mape > 0.06 {
		t.Errorf("%.1f %%, want at most 6 %%", 100*mape)
	}
	if f.left[4] < 1 {
		t.Errorf("a row five times too long is %g in log time above the others", f.left[4])
	}
}

// TestShapelessLeftOut compares with fits without the row. The faster computation uses the constants and
// outlier noise of the fit to all rows.
func TestShapelessLeftOut(t *testing.T) {
	prior := jobTrained(t, func(model, site int) bool { return model == 1 && site == 1 })
	rows := jobGrid(1, 1, 0.02)
	f, err := prior.Fit(context.Background(), rows[0].Config, rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 11, 29} {
		without, err := prior.Fit(context.Background(), rows[0].Config, slices.Delete(slices.Clone(rows), i, i+1))
		if err != nil {
			t.Fatal(err)
		}
		y, _, err := without.predict(&rows[i].Config)
		if err != nil {
			t.Fatal(err)
		}
		if want := math.Log(rows[i].MedianStepSec()) - y; math.Abs(f.left[i]-want) > 0.03 {
			t.Errorf("row %d: %g, refitted without it %g", i, f.left[i], want)
		}
	}
}

// TestShapelessPhysics: more bandwidth, fewer samples or more servers never take longer, for many constants.
func TestShapelessPhysics(t *testing.T) {
	prior := jobTrained(t, func(int, int) bool { return false })
	c := jobConfig("model1", "gpu1", 16, 4, 64)
	f, err := prior.Fit(context.Background(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	sec := func(change func(*spec.Config)) float64 {
		c := c
		change(&c)
		y, _, err := f.predict(&c)
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	base := sec(func(*spec.Config) {})
	for name, y := range map[string]float64{
		"network": sec(func(c *spec.Config) { c.Link.InterBps *= 4 }),
		"PCIe":    sec(func(c *spec.Config) { c.Link.IntraBps *= 4 }),
		"batch":   sec(func(c *spec.Config) { c.Plan.MicroBatch /= 4 }),
		"nodes":   sec(func(c *spec.Config) { c.Plan.DP, c.Shape = 4, spec.Packed(4, 4) }),
	} {
		if y >= base {
			t.Errorf("%s: ln T %g, want below %g", name, y, base)
		}
	}
	// Names do not matter: the same rows under other names give the same predictions.
	renamed := jobGrid(1, 1, 0.02)
	g, err := prior.Fit(context.Background(), renamed[0].Config, renamed)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(renamed)
	h, err := prior.Fit(context.Background(), renamed[0].Config, renamed)
	if err != nil {
		t.Fatal(err)
	}
	a, _, _ := g.predict(&c)
	b, _, _ := h.predict(&c)
	if math.Abs(a-b) > 1e-6 {
		t.Errorf("the order of rows moves ln T from %g to %g", a, b)
	}
}

func TestShapelessSurvivesJSON(t *testing.T) {
	prior := jobTrained(t, func(int, int) bool { return false })
	b, err := json.Marshal(prior)
	if err != nil {
		t.Fatal(err)
	}
	var again Prior
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	for _, c := range []spec.Config{jobConfig("model1", "gpu1", 8, 4, 16), serversConfig("new", 4, 2, 16)} {
		f, err := prior.Fit(context.Background(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := again.Fit(context.Background(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		y1, sd1, _ := f.predict(&c)
		y2, sd2, _ := g.predict(&c)
		if y1 != y2 || sd1 != sd2 {
			t.Errorf("%g +- %g came back as %g +- %g", y1, sd1, y2, sd2)
		}
	}
	again = Prior{AllReduce: []cell{{Model: "m", Site: "s", Mean: []float64{1}}}}
	if _, err := again.Fit(context.Background(), jobConfig("m", "d", 1, 1, 1), nil); err == nil {
		t.Error("a prior of too few figures was taken")
	}
}

// TestShapelessWithout: dropping a cell equals training without its rows.
func TestShapelessWithout(t *testing.T) {
	dropped := jobTrained(t, func(int, int) bool { return false }).Without(func(model, site string) bool {
		return model == "model1" && site == "gpu1/test"
	})
	trained := jobTrained(t, func(model, site int) bool { return model == 1 && site == 1 })
	if !reflect.DeepEqual(dropped.AllReduce, trained.AllReduce) || !reflect.DeepEqual(dropped.Servers, trained.Servers) {
		t.Errorf("%d and %d cells are not %d and %d trained without", len(dropped.AllReduce), len(dropped.Servers),
			len(trained.AllReduce), len(trained.Servers))
	}
}

// TestShapelessRefuses: other plans are not covered; extreme values give finite numbers or errors, never NaN.
func TestShapelessRefuses(t *testing.T) {
	prior := &Prior{}
	for name, change := range map[string]func(*spec.Plan){
		"tensor":  func(p *spec.Plan) { p.TP = 2 },
		"zero":    func(p *spec.Plan) { p.ZeRO = 1 },
		"offload": func(p *spec.Plan) { p.Offload = spec.OffloadOptimizer },
		"again":   func(p *spec.Plan) { p.Recompute = spec.RecomputeFull },
		"async":   func(p *spec.Plan) { p.ParamServers, p.Async = 2, true },
		"endless": func(p *spec.Plan) { p.DP = 1 << 40 },
	} {
		c := jobConfig("m", "d", 2, 2, 4)
		change(&c.Plan)
		if _, err := prior.Fit(context.Background(), c, nil); !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("%s: %v, want ErrNotCovered", name, err)
		}
	}
	rows := jobGrid(0, 0, 0)
	rows[0].Config.Model.ParamCount, rows[1].Config.Link.InterBps = math.Inf(1), math.NaN()
	rows[2].Config.Plan.MicroBatch = 1 << 26
	f, err := prior.Fit(context.Background(), rows[0].Config, rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		y, sd, err := f.predict(&m.Config)
		if err == nil && (math.IsNaN(y+sd) || math.IsInf(y+sd, 0)) {
			t.Errorf("%s: %g +- %g", m.Config.Plan, y, sd)
		}
	}
	other := serversConfig("m", 2, 2, 4)
	if _, _, err := f.predict(&other); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("parameter servers by a fit of all-reduce: %v", err)
	}
}

func BenchmarkShapelessFit(b *testing.B) {
	prior := jobTrained(b, func(model, site int) bool { return model == 1 && site == 1 })
	var rows []spec.Measurement
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		c := jobConfig("model1", "gpu1", 1+i%25, 4, 4*(1+i))
		rows = append(rows, jobMeasured(c, jobTruth(allReduceForm, 1, 1), 0.05, rng))
	}
	if _, err := prior.Fit(context.Background(), rows[0].Config, nil); err != nil { // computes the shared effects, which later fits reuse
		b.Fatal(err)
	}
	b.Run("rows=100", func(b *testing.B) {
		for b.Loop() {
			if _, err := prior.Fit(context.Background(), rows[0].Config, rows); err != nil {
				b.Fatal(err)
			}
		}
	})
	f, err := prior.Fit(context.Background(), rows[0].Config, rows)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("predict/rows=100", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := f.predict(&rows[7].Config); err != nil {
				b.Fatal(err)
			}
		}
	})
}
