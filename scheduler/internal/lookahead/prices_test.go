package lookahead

import (
	"math"
	"testing"
)

func TestPricesMean(t *testing.T) {
	p := Prices{Times: []float64{0, 10, 30}, Devices: [][]float64{{4, 1}}}
	for _, c := range []struct {
		name     string
		group    int
		later    float64
		from, to float64
		want     float64
	}{
		{"within one", 0, 0, 2, 8, 4},
		{"over two", 0, 0, 5, 15, 2.5},
		{"beyond the last", 0, 0, 20, 40, 0.5},
		{"before the first", 0, 0, -10, 10, 2},
		{"five seconds later", 0, 5, 0, 10, 2.5},
		{"of a group without", 1, 0, 0, 10, 0},
	} {
		later := p.Later(c.later)
		if got := later.Mean(c.group, c.from, c.to); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
	if p.Times[1] != 10 {
		t.Error("Later has changed the prices it was called on")
	}
}

// TestPricesKnown checks that the prices of a schedule give a good bound some time later with more tasks, and that a few
// rounds from them lead to schedules as good as many rounds without.
func TestPricesKnown(t *testing.T) {
	p := city(300, 250, 20, 1, 1)
	plan := mustSearch(t, p, Options{Rounds: 60})
	same, err := Search(t.Context(), p, Options{Rounds: 1, Prices: plan.Prices})
	if err != nil || same.Bound < plan.Bound-1e-9*math.Abs(plan.Bound) {
		t.Errorf("the prices that proved %g prove %g: %v", plan.Bound, same.Bound, err)
	}
	nothing := Prices{Times: plan.Prices.Times, Devices: make([][]float64, len(plan.Prices.Devices)), Ends: make([]float64, len(plan.Prices.Ends))}
	for g := range nothing.Devices {
		nothing.Devices[g] = make([]float64, len(plan.Prices.Devices[g]))
	}
	blank, err := Search(t.Context(), p, Options{Rounds: 60, Prices: nothing})
	if err != nil || blank.Bound != plan.Bound {
		t.Errorf("prices of 0 prove %g, none prove %g: %v", blank.Bound, plan.Bound, err)
	}
	next, hint, prices := later(p, &plan, 10, city(310, 250, 20, 2, 1).Tasks[305:])
	cold := mustSearch(t, next, Options{Rounds: 60, Hint: hint})
	for rounds, most := range map[int]float64{1: 2, 15: 1} {
		warm := mustSearch(t, next, Options{Rounds: rounds, Hint: hint, Prices: prices})
		t.Logf("gap after 60 rounds without prices %.4f, after %d with %.4f", next.Gap(&cold), rounds, next.Gap(&warm))
		if next.Gap(&warm) > most*next.Gap(&cold) {
			t.Errorf("gap after %d rounds with prices %g, without %g", rounds, next.Gap(&warm), next.Gap(&cold))
		}
	}
}
