package analytic

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
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

// TestQuantileOfNext: of n values, a further one is as likely to be at each of the n+1 places. So three in
// four are below the third of three, the ninth of eleven and the tenth of twelve; of two, none is.
func TestQuantileOfNext(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 7: 6, 11: 9, 12: 10} {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(n - i)
		}
		if got := quantileOfNext(v, 0.75); got != want {
			t.Errorf("of %v: %g, want %g", v, got, want)
		}
	}
}
