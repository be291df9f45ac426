package pollux

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// truth holds the parameters that generate the invented step times.
var truth = vec{0.05, 0.01, 0.08, 0.006, 0.03, 0.004, 1.6}

// measuredBy returns the measurement that a job with parameters v would give.
func measuredBy(v *vec, c spec.Config) spec.Measurement {
	p := c.Plan.Normal()
	x := newPoint(&c, &p)
	t, compute := x.step(v, x.Accum-1)
	m := spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{t.sec}, Source: "invented"}
	m.PhaseSec = map[string]float64{"sync": t.sec - float64(x.Accum)*compute.sec}
	return m
}

func measuredGrid(v *vec, micro, accum []int, shapes ...[]int) (rows []spec.Measurement) {
	for _, s := range shapes {
		for _, m := range micro {
			for _, a := range accum {
				rows = append(rows, measuredBy(v, perftest.DataParallel(m, a, s...)))
			}
		}
	}
	return rows
}

// TestPolluxRecovers: the fit recovers the parameters that generated the data, approximately, since the
// penalties pull γ to 1 and β/α to 0.
func TestPolluxRecovers(t *testing.T) {
	rows := measuredGrid(&truth, []int{4, 16, 64}, []int{1, 3}, perftest.DataParallelShapes...)
	fitted, card := perftest.Fit(t, Family, rows)
	if card.NFit != 3*2*len(perftest.DataParallelShapes) || len(card.Warnings) > 0 {
		t.Errorf("card %+v", card)
	}
	for i, p := range paramNames {
		got := card.Params[p.name]
		if d := math.Abs(got.Value/truth[i] - 1); d > 0.1 || got.Unit != p.unit {
			t.Errorf("%s: %+v, want %g %s", p.name, got, truth[i], p.unit)
		}
	}
	unseen := measuredGrid(&truth, []int{8, 128}, []int{1, 2, 5}, []int{2, 1}, []int{4, 4, 2}, []int{4, 4, 4, 4, 4, 4, 4, 4})
	if e := perftest.WorstError(t, fitted, unseen); e > 0.05 {
		t.Errorf("worst error on rows not fitted %.3f", e)
	}
}

// TestPolluxWithoutPhases: with a row of one replica, the synchronization time follows from step times alone.
func TestPolluxWithoutPhases(t *testing.T) {
	rows := measuredGrid(&truth, []int{4, 16, 64}, []int{1, 3}, perftest.DataParallelShapes...)
	for i := range rows {
		rows[i].PhaseSec = nil
	}
	fitted, _ := perftest.Fit(t, Family, rows)
	if e := perftest.WorstError(t, fitted, rows); e > 0.05 {
		t.Errorf("worst error %.3f", e)
	}
	alone := slices.DeleteFunc(rows, func(m spec.Measurement) bool { return m.Config.Plan.DP == 1 })
	_, _, err := published.fit(t.Context(), perfmodel.Rows(alone))
	if !errors.Is(err, perfmodel.ErrTooFewPoints) || !strings.Contains(err.Error(), "alpha_c and beta_c") {
		t.Errorf("no replica alone: %v", err)
	}
}

// TestPolluxPins: parameters without rows have the artifact's values, and a warning.
func TestPolluxPins(t *testing.T) {
	for _, c := range []struct {
		name   string
		rows   []spec.Measurement
		want   map[string]float64 // parameters
		warned []string
	}{
		{"one row", measuredGrid(&truth, []int{16}, []int{1}, []int{1}),
			map[string]float64{"alpha_c": 0.105, "alpha_r": 1e-8, "beta_r": 1e-8, "alpha_n": 1.1e-8, "beta_n": 1.1e-8},
			[]string{"rows of one micro-batch", "several replicas on one node", "on several nodes", "more than two replicas"}},
		{"one node", measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}, []int{2}, []int{4}),
			nil, []string{"on several nodes"}},
		{"two replicas", measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}, []int{2}, []int{1, 1}),
			map[string]float64{"beta_r": 1e-8, "beta_n": 1e-8}, []string{"more than two replicas"}},
		{"a device a node", measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}, []int{1, 1}, []int{1, 1, 1}),
			map[string]float64{"alpha_r": 1e-8, "beta_r": 1e-8}, []string{"several replicas on one node"}},
	} {
		_, card := perftest.Fit(t, Family, c.rows)
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
	_, card := perftest.Fit(t, Family, measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}, []int{2}, []int{4}))
	if got, want := card.Params["alpha_n"].Value, 1.1*card.Params["alpha_r"].Value; got != want {
		t.Errorf("alpha_n = %g, want %g", got, want)
	}
}

// TestPolluxGradient compares the gradient of the objective with finite differences.
func TestPolluxGradient(t *testing.T) {
	rows := averageRows(measuredGrid(&truth, []int{4, 64}, []int{1, 3}, perftest.DataParallelShapes...))
	rows[3].grad, rows[3].extra = 0, 2
	rapid.Check(t, func(t *rapid.T) {
		var v vec
		for i := range v {
			v[i] = math.Exp(rapid.Float64Range(-7, 0).Draw(t, paramNames[i].name))
		}
		v[plOverlap] = rapid.Float64Range(1, 9).Draw(t, "γ")
		_, grad := lossOf(rows, &v)
		for i := range v {
			up, down, h := v, v, 1e-5*v[i]
			up[i], down[i] = v[i]+h, v[i]-h
			fu, _ := lossOf(rows, &up)
			fd, _ := lossOf(rows, &down)
			if slope := (fu - fd) / (2 * h); math.Abs(slope-grad[i]) > 1e-4*(1/v[i]+math.Abs(slope)) {
				t.Fatalf("d loss/d %s = %g, differences give %g at %v", paramNames[i].name, grad[i], slope, v)
			}
		}
	})
}

func TestPolluxNotCovered(t *testing.T) {
	fitted, _ := perftest.Fit(t, Family, measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...))
	perftest.CheckRefused(t, fitted, perftest.NotDataParallel)
	perftest.CheckRefused(t, fitted, map[string]func(*spec.Config){"parameter servers": func(c *spec.Config) { c.Plan.ParamServers = 2 }})
	c := perftest.DataParallel(8, 1, 4)
	c.Plan.Precision = spec.BF16 // rows without a recorded precision match any
	if _, err := fitted.Predict(t.Context(), c); err != nil {
		t.Error(err)
	}
}

func TestPolluxFitted(t *testing.T) {
	rows := measuredGrid(&truth, []int{4, 16}, []int{1, 2}, perftest.DataParallelShapes...)
	perftest.CheckFitted(t, Family, rows)
	perftest.CheckFitted(t, SiaFamily, rows)
}

func TestPolluxLoadErrors(t *testing.T) {
	good, _ := perftest.Fit(t, Family, measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...))
	b, err := good.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	m := good.(*Model)
	gamma := fmt.Sprintf("%v]", m.Params[plOverlap])
	for _, c := range []struct{ in, want string }{
		{"", "reading a fitted model"},
		{"{}", "alpha_c is 0"},
		{strings.Replace(string(b), gamma, "0.5]", 1), "gamma is 0.5, want 1 to 10"},
	} {
		if _, err := published.load([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.in, err, c.want)
		}
	}
}

// TestPolluxProperties: for any parameters within their bounds, step times are positive and finite, and
// increase with micro-batch, accumulation and, on several nodes, replicas.
func TestPolluxProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v vec
		for i := range v {
			v[i] = math.Exp(rapid.Float64Range(math.Log(leastParam), 6).Draw(t, paramNames[i].name))
		}
		v[plOverlap] = rapid.Float64Range(1, 10).Draw(t, "γ")
		n := rapid.IntRange(1, 1<<20)
		x := point{Nodes: rapid.IntRange(2, 1000).Draw(t, "nodes"), Replicas: n.Draw(t, "replicas") + 1, Micro: n.Draw(t, "micro"), Accum: n.Draw(t, "accum")}
		sec := x.seconds(&v)
		if !(sec > 0) || math.IsInf(sec, 0) {
			t.Fatalf("%+v: %g s", x, sec)
		}
		for _, more := range []point{{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}} {
			y := point{x.Nodes, x.Replicas + more.Replicas, x.Micro + more.Micro, x.Accum + more.Accum}
			if after := y.seconds(&v); after < sec*(1-1e-12) {
				t.Fatalf("%+v takes %g s, %+v takes %g s", x, sec, y, after)
			}
		}
	})
}

func TestPolluxWarnsOutsideItsRows(t *testing.T) {
	fitted, _ := perftest.Fit(t, Family, measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}, []int{1, 1}, []int{2, 2}))
	for _, c := range []struct {
		c    spec.Config
		want string
	}{
		{perftest.DataParallel(8, 4, 2, 2), ""},
		{perftest.DataParallel(64, 1, 1), "micro-batch 64, fitted to 4..16"},
		{perftest.DataParallel(8, 1, 3, 3), "6 replicas, fitted to at most 4"},
		{perftest.DataParallel(8, 1, 1, 1, 1), "3 nodes, fitted to at most 2"},
		{perftest.DataParallel(8, 1, 2), "several replicas on one node"},
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

func TestPeers(t *testing.T) {
	for _, f := range []perfmodel.Family{Family, SiaFamily} {
		perftest.CheckNothingToFit(t, f)
		perftest.CheckKeepsCommonestJob(t, f, measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...))
	}
}

// TestServersAreNotOverlooked: neither family covers plans with parameter servers.
func TestServersAreNotOverlooked(t *testing.T) {
	pollux, _ := perftest.Fit(t, Family, measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...))
	perftest.CheckServersRefused(t, "pollux", pollux)
}
