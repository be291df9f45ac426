package analytic

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestWidthsRefused(t *testing.T) {
	for _, bad := range []string{`{"cov":[[1]]}`, `{"cov":[[0,0,0,0,0,0],[0],[0],[0],[0],[0]]}`, `{"scale":-1}`, `{"floor":1e9}`} {
		var w Widths
		if err := json.Unmarshal([]byte(bad), &w); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// TestWidthsOfNewSites: the effects of a new site add to the uncertainty common to all sites.
func TestWidthsOfNewSites(t *testing.T) {
	p := Untrained()
	w := (&Layout{}).widths(&p.dist, -1, -1, "Ampere", launchEager)
	for e := range effects {
		want := effects[e].sd * effects[e].sd
		for i := range params {
			if slices.Contains(drivers(e, "Ampere", launchEager), params[i].name) {
				want += params[i].sd * params[i].sd
			}
		}
		if math.Abs(w.Cov[e][e]/want-1) > 1e-9 {
			t.Errorf("%s: variance %g, want %g", effects[e].name, w.Cov[e][e], want)
		}
	}
}

// TestSpreadOfCPUs: sites on CPUs differ more from each other.
func TestSpreadOfCPUs(t *testing.T) {
	to := Layout{Frameworks: []string{"f"}, Sites: []Site{{"f", "A"}, {"f", "CPU of some kind"}}}
	g := extend(&Untrained().dist, &Layout{}, &to)
	a, b := to.SiteAt(to.Sites[0]), to.SiteAt(to.Sites[1])
	if got := math.Sqrt(g.Cov.At(b, b) / g.Cov.At(a, a)); math.Abs(got-cpuSpread) > 1e-9 {
		t.Errorf("%g times the spread, want %d", got, cpuSpread)
	}
}

// TestHierarchicalQuantile: of n values, each its own group, a further one is as likely to be at each of the n+1 places. So
// three in four are below the third of three, the ninth of eleven and the tenth of twelve; of two, none is, and the largest
// counts.
func TestHierarchicalQuantile(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 7: 6, 11: 9, 12: 10} {
		var v [][]float64
		for i := range n {
			v = append(v, []float64{float64(n - i)})
		}
		if got := hierarchicalQuantile(v, 0.75); got != want {
			t.Errorf("of %v: %g, want %g", v, got, want)
		}
	}
	// A group of many rows weighs as much as one of one.
	large := make([]float64, 90)
	for i := range large {
		large[i] = 100 + float64(i)
	}
	if got := hierarchicalQuantile([][]float64{large, {3}, {2}, {1}}, 0.6); got != 3 {
		t.Errorf("%g, want 3, the third of four groups", got)
	}
	if got := hierarchicalQuantile([][]float64{large, {3}, {2}}, 0.9); got != 181 {
		t.Errorf("of too few groups %g, want the 82nd of 90 values of a group", got)
	}
}

// TestHierarchicalCoverage: with groups of many sizes, each of its own scale, nine in ten values of a new group are below the
// quantile.
func TestHierarchicalCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	group := func(n int) (out []float64) {
		scale := math.Exp(0.7 * r.NormFloat64())
		for range n {
			out = append(out, scale*math.Abs(r.NormFloat64()))
		}
		return out
	}
	const draws, sources = 5000, 60
	below := 0.0
	for range draws {
		var groups [][]float64
		for range sources {
			groups = append(groups, group(1+r.IntN(60)))
		}
		if group(1)[0] <= hierarchicalQuantile(groups, 0.9) {
			below++
		}
	}
	if got := below / draws; got < 0.89 || got > 0.9+2.0/(sources+1) { // the bounds of the theorem, and 2 standard errors
		t.Errorf("%.3f of the values are below, want 0.9", got)
	}
}

// TestNoiseOfRows: the noise that a source states is that of its row, also if the rows before it are left out.
func TestNoiseOfRows(t *testing.T) {
	row := func(noise string, covered bool) spec.Measurement {
		c := perftest.GPT(spec.Plan{DP: 8, MicroBatch: 1, Precision: spec.BF16}.Normal())
		if !covered {
			c.Model = spec.Model{Name: "unknown", Kind: spec.Opaque}
		}
		m := perftest.Measured(c, 1)
		m.Env = map[string]string{spec.EnvStepNoise: noise}
		return m
	}
	for _, of := range []struct {
		rows []spec.Measurement
		want []float64
	}{
		{[]spec.Measurement{row("", true), row("", true)}, nil},
		{[]spec.Measurement{row("", true), row("0.3", false), row("0.2", true), row("", true)}, []float64{0, 0.2, 0}},
		{[]spec.Measurement{row("0.1", true), row("", true), row("0.2", true)}, []float64{0.1, 0, 0.2}},
	} {
		c, err := NewCalibration(t.Context(), of.rows)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Noise, of.want) {
			t.Errorf("noise %v of %d rows, want %v", c.Noise, len(c.Rows), of.want)
		}
	}
}

// TestScales: networks without routed experts have the scale of their own rows; those with them no less than that of all
// rows, nor than that of their own. Noise that a source states is no error.
func TestScales(t *testing.T) {
	const sd = 0.1
	type rows struct {
		n      int // sources of one row
		z      float64
		routed bool
		noise  float64 // in multiples of sd
	}
	for _, of := range []struct {
		rows          []rows
		dense, routed float64
	}{
		{[]rows{{9, 12, false, 0}, {1, 5, true, 0}, {1, 6, true, 0}}, 12, 12},
		{[]rows{{30, 2, false, 0}, {1, 40, true, 0}}, 2, 40},
		{[]rows{{9, 2, false, 0}, {9, 10, true, 0}}, 2, 10},
		{[]rows{{9, 2, false, math.Sqrt(3)}, {9, 3, true, 0}}, 1.2, 3}, // 2 of a deviation twice as large
	} {
		var ms []spec.Measurement
		var left []LeftOut
		for _, r := range of.rows {
			for range r.n {
				c := perftest.GPT(spec.Plan{DP: 8, MicroBatch: 1, Precision: spec.BF16}.Normal())
				if r.routed {
					c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN = 8, 2, 4096
				}
				m := perftest.Measured(c, 10)
				m.Env = map[string]string{spec.EnvStepNoise: strconv.FormatFloat(r.noise*sd, 'g', -1, 64)}
				left = append(left, LeftOut{Rows: []int{len(ms)}, Errors: []float64{r.z * sd}})
				ms = append(ms, m)
			}
		}
		c, err := NewCalibration(t.Context(), ms)
		if err != nil || len(c.Rows) != len(ms) {
			t.Fatal(len(c.Rows), err)
		}
		c.Arrange()
		dense, routed := c.scales(left, &Widths{Floor: sd})
		same(t, "without experts", dense, of.dense)
		same(t, "with experts", routed, of.routed)
	}
}
