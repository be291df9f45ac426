package optimus

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/dataparallel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// serverConfig returns an invented job with parameter servers; its placement is not recorded.
func serverConfig(workers, servers, micro int) spec.Config {
	c := perftest.DataParallel(micro, 1, 1)
	c.Shape = spec.Shape{}
	c.Plan.DP, c.Plan.ParamServers = workers, servers
	return c
}

// asyncConfig is serverConfig with asynchronous updates of 8 samples.
func asyncConfig(workers, servers int) spec.Config {
	c := serverConfig(workers, servers, 8)
	c.Plan.Async = true
	return c
}

// syncGrid returns configurations with a global batch of 64 and different numbers of workers and servers.
func syncGrid() (out []spec.Config) {
	for _, w := range []int{1, 2, 4, 8} {
		for _, p := range []int{1, 2, 5} {
			out = append(out, serverConfig(w, p, 64/w))
		}
	}
	return out
}

func asyncGrid() (out []spec.Config) {
	for _, w := range []int{1, 2, 4, 8} {
		for _, p := range []int{1, 2, 5} {
			out = append(out, asyncConfig(w, p))
		}
	}
	return out
}

func ringGrid() (out []spec.Config) {
	for _, shape := range perftest.DataParallelShapes {
		for _, micro := range []int{2, 8} {
			out = append(out, perftest.DataParallel(micro, 2, shape...))
		}
	}
	return out
}

func measuredBy(theta []float64, configs []spec.Config) (rows []spec.Measurement) {
	for _, c := range configs {
		sec := formOf(dataparallel.JobOf(&c)).seconds(newPoint(&c), theta)
		rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{sec}, Source: "invented"})
	}
	return rows
}

// TestOptimusRecovers: the fit recovers the parameters that generated the data, including those that are 0, and
// predicts plans that were not measured.
func TestOptimusRecovers(t *testing.T) {
	for _, c := range []struct {
		name   string
		truth  []float64
		rows   []spec.Config
		unseen []spec.Config
	}{
		{"synchronous", []float64{0.01, 0.2, 0.05, 0.01, 0.002}, syncGrid(), []spec.Config{serverConfig(6, 3, 11), serverConfig(16, 9, 4)}},
		{"synchronous, two are 0", []float64{0.01, 0, 0.05, 0.01, 0}, syncGrid(), []spec.Config{serverConfig(6, 3, 11)}},
		{"asynchronous", []float64{0.2, 0.05, 0.01, 0.002}, asyncGrid(), []spec.Config{asyncConfig(6, 3), asyncConfig(20, 4)}},
		{"all-reduce", []float64{0.01, 0.2, 0.3, 0.004, 0.1}, ringGrid(), []spec.Config{perftest.DataParallel(4, 3, 4, 4, 4, 4, 4), perftest.DataParallel(5, 1, 3)}},
	} {
		fitted, card := perftest.Fit(t, Family, measuredBy(c.truth, c.rows))
		for i, p := range formOf(dataparallel.JobOf(&c.rows[0])).terms {
			if got := card.Params[p.name]; math.Abs(got.Value-c.truth[i]) > 1e-9 || got.Unit != p.unit {
				t.Errorf("%s: %s is %+v, want %g %s", c.name, p.name, got, c.truth[i], p.unit)
			}
		}
		if len(card.Warnings) > 0 || card.NFit != len(c.rows) {
			t.Errorf("%s: %+v", c.name, card)
		}
		if e := perftest.WorstError(t, fitted, measuredBy(c.truth, c.unseen)); e > 1e-9 {
			t.Errorf("%s: worst error %g on plans not fitted", c.name, e)
		}
		perftest.CheckFitted(t, Family, measuredBy(c.truth, c.rows))
	}
}

// TestOptimusWeighsByTime: errors are relative, so a row that is ten times as slow has the same weight as
// another.
func TestOptimusWeighsByTime(t *testing.T) {
	rows := measuredBy([]float64{0, 1, 0, 0, 0}, ringGrid())
	for i := range rows {
		if i%2 == 0 {
			rows[i].StepSec[0] = 10
		}
	}
	_, card := perftest.Fit(t, Family, rows)
	// Half the rows take 1 s, half 10 s, and they differ only in the batch: with a constant alone, (1-c)² +
	// (1-c/10)² is smallest at 1.1/1.01.
	c := formOf(dataparallel.Job{})
	sum := 0.0
	for _, r := range averageRows(rows) {
		theta := []float64{}
		for _, p := range c.terms {
			theta = append(theta, card.Params[p.name].Value)
		}
		d := 1 - c.seconds(r.point, theta)/r.seconds
		sum += d * d
	}
	constant := 0.0
	for _, r := range averageRows(rows) {
		d := 1 - 1.1/1.01/r.seconds
		constant += d * d
	}
	if !(sum <= constant) {
		t.Errorf("sum of squares %g, %g with the best constant", sum, constant)
	}
}

// TestOptimusBlind: if all rows have as many servers as workers, as when Optimus profiles, some terms cannot be
// identified. This does not affect such configurations, and predictions of others have a warning.
func TestOptimusBlind(t *testing.T) {
	truth := []float64{0.01, 0.2, 0.05, 0.01, 0.002}
	var diagonal []spec.Config
	for _, n := range []int{1, 2, 3, 5, 7, 9} {
		diagonal = append(diagonal, serverConfig(n, n, 60/n))
	}
	rows := measuredBy(truth, diagonal)
	fitted, card := perftest.Fit(t, Family, rows)
	if got := strings.Join(card.Warnings, " "); !strings.Contains(got, "do not identify fixed, workers_per_server, workers, servers") {
		t.Errorf("warnings %q", got)
	}
	if e := perftest.WorstError(t, fitted, measuredBy(truth, []spec.Config{serverConfig(4, 4, 15)})); e > 1e-6 {
		t.Errorf("worst error on the diagonal %g", e)
	}
	for _, c := range []struct {
		c    spec.Config
		want bool
	}{{serverConfig(4, 4, 15), false}, {serverConfig(4, 2, 15), true}} {
		p, err := fitted.Predict(t.Context(), c.c)
		if err != nil || strings.Contains(fmt.Sprint(p.Warnings), "which matters here") != c.want {
			t.Errorf("%s: %+v, %v", c.c.Plan, p.Warnings, err)
		}
	}
}

// TestOptimusTooFew: the error names the terms that cannot be identified, at the counts of the authors' code.
func TestOptimusTooFew(t *testing.T) {
	for _, c := range []struct {
		configs []spec.Config
		n       int
		want    string
	}{
		{syncGrid(), 5, "4 points, want 5: "},
		{asyncGrid(), 4, "3 points, want 4: "},
		{ringGrid()[:6], 4, "3 points, want 4: "}, // one node: the term for several nodes is 0
	} {
		if _, _, err := fit(t.Context(), perfmodel.Rows(measuredBy([]float64{1, 1, 1, 1, 1}, c.configs[:c.n]))); err != nil {
			t.Errorf("%d points: %v", c.n, err)
		}
		_, _, err := fit(t.Context(), perfmodel.Rows(measuredBy([]float64{1, 1, 1, 1, 1}, c.configs[:c.n-1])))
		if !errors.Is(err, perfmodel.ErrTooFewPoints) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "workers") {
			t.Errorf("%d points: %v, want %q", c.n-1, err, c.want)
		}
	}
}

func TestOptimusNotCovered(t *testing.T) {
	ring, _ := perftest.Fit(t, Family, measuredBy([]float64{0.01, 0.2, 0.3, 0.004, 0.1}, ringGrid()))
	perftest.CheckRefused(t, ring, perftest.NotDataParallel)
	servers, _ := perftest.Fit(t, Family, measuredBy([]float64{0.01, 0.2, 0.05, 0.01, 0.002}, syncGrid()))
	async, _ := perftest.Fit(t, Family, measuredBy([]float64{0.2, 0.05, 0.01, 0.002}, asyncGrid()))
	other := asyncConfig(2, 2)
	other.Plan.MicroBatch = 16
	for _, c := range []struct {
		f perfmodel.Predictor
		c spec.Config
	}{{ring, serverConfig(2, 2, 4)}, {servers, perftest.DataParallel(2, 1, 4)}, {servers, asyncConfig(2, 2)}, {async, serverConfig(2, 2, 8)}, {async, other}} {
		if _, err := c.f.Predict(t.Context(), c.c); !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("%s: %v", c.c.Plan, err)
		}
	}
}

func TestOptimusWarnsOutsideItsRows(t *testing.T) {
	fitted, _ := perftest.Fit(t, Family, measuredBy([]float64{0.01, 0.2, 0.05, 0.01, 0.002}, syncGrid()))
	p, err := fitted.Predict(t.Context(), serverConfig(9, 6, 80))
	if err != nil || len(p.Warnings) != 3 {
		t.Fatalf("%+v, %v, want three warnings", p, err)
	}
	for i, want := range []string{"9 workers, fitted to 1..8", "6 parameter servers, fitted to 1..5", "80 samples per worker, fitted to 8..64"} {
		if !strings.Contains(p.Warnings[i].Error(), want) {
			t.Errorf("%v, want %q", p.Warnings[i], want)
		}
	}
	one, _ := perftest.Fit(t, Family, measuredBy([]float64{0.01, 0.2, 0.3, 0.004, 0}, ringGrid()[:8]))
	p, err = one.Predict(t.Context(), perftest.DataParallel(4, 2, 2, 2))
	if got := fmt.Sprint(p.Warnings); err != nil || !strings.Contains(got, "several nodes, fitted to one") || !strings.Contains(got, "do not identify several_nodes") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestOptimusLoadErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "reading a fitted model"},
		{"{}", "with 0 parameters, want 5"},
		{`{"theta":[1,2]}`, "with 2 parameters, want 5"},
		{`{"theta":[1,2,3,4,5],"blind":[[1]]}`, "with 1 parameters, want 5"},
		{`{"theta":[1,2,3,-4,5]}`, "workers is -4, want 0 or more"},
		{`{"job":{"servers":true,"update":8},"theta":[1,2,3,4,5]}`, "with 5 parameters, want 4"},
	} {
		if _, err := load([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.in, err, c.want)
		}
	}
}

// TestOptimusProperties: for any measurements, predictions are positive and finite, or an error.
func TestOptimusProperties(t *testing.T) {
	grids := [][]spec.Config{syncGrid(), asyncGrid(), ringGrid()}
	rapid.Check(t, func(rt *rapid.T) {
		grid := grids[rapid.IntRange(0, 2).Draw(rt, "form")]
		rows := measuredBy([]float64{1, 1, 1, 1, 1}, grid)
		for i := range rows {
			rows[i].StepSec[0] = math.Exp(rapid.Float64Range(-12, 12).Draw(rt, "ln T"))
		}
		fitted, card, err := fit(t.Context(), perfmodel.Rows(rows))
		if err != nil {
			rt.Fatal(err)
		}
		for name, p := range card.Params {
			if !(p.Value >= 0) || math.IsInf(p.Value, 0) {
				rt.Fatalf("%s = %g", name, p.Value)
			}
		}
		for _, c := range grid {
			p, err := fitted.Predict(t.Context(), c)
			if errors.Is(err, perfmodel.ErrNotCovered) {
				continue
			}
			if err != nil || !(p.Throughput > 0) || math.IsInf(p.Throughput, 0) {
				rt.Fatalf("%s: %+v, %v", c.Plan, p, err)
			}
		}
	})
}

func TestOptimusAsPeer(t *testing.T) {
	perftest.CheckNothingToFit(t, Family)
	var configs []spec.Config
	for _, nodes := range perftest.DataParallelShapes {
		configs = append(configs, perftest.DataParallel(4, 1, nodes...), perftest.DataParallel(16, 1, nodes...))
	}
	perftest.CheckKeepsCommonestJob(t, Family, measuredBy([]float64{0.01, 0.05, 0.02, 0.001, 0.03}, configs))
}
