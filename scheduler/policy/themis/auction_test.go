package themis

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawLots(t *rapid.T) (devices int, lots []lot) {
	devices = rapid.IntRange(0, 12).Draw(t, "devices")
	for range rapid.IntRange(0, 7).Draw(t, "bidders") {
		lots = append(lots, lot{rapid.IntRange(1, 8).Draw(t, "wants"), rapid.Float64Range(0.01, 3).Draw(t, "gain")})
	}
	return devices, lots
}

// best returns the highest sum of gains of lots that fit, except lot without (-1 = none), by
// exhaustive search.
func best(devices int, lots []lot, without int) float64 {
	most := 0.0
	for set := range 1 << len(lots) {
		need, sum := 0, 0.0
		for i, l := range lots {
			if set>>i&1 == 1 {
				need, sum = need+l.devices, sum+l.gain
			}
		}
		if need <= devices && (without < 0 || set>>without&1 == 0) {
			most = max(most, sum)
		}
	}
	return most
}

// The winners have the highest product of valuations. Each pays the loss that its presence
// causes the others, as Cole, Gkatzelis and Goel define it.
func TestPartialAllocation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices, lots := drawLots(t)
		awards := partialAllocation(devices, lots)
		need, sum := 0, 0.0
		for i, a := range awards {
			if a.won {
				need, sum = need+lots[i].devices, sum+lots[i].gain
			}
		}
		if need > devices || math.Abs(sum-best(devices, lots, -1)) > 1e-9 {
			t.Fatalf("%d devices, lots %v: awards %v take %d and gain %g, the best is %g", devices, lots, awards, need, sum, best(devices, lots, -1))
		}
		for i, a := range awards {
			if !a.won {
				continue
			}
			if want := math.Exp(sum - lots[i].gain - best(devices, lots, i)); math.Abs(a.keeps-want) > 1e-9 || !(a.keeps > 0 && a.keeps <= 1) {
				t.Fatalf("%d devices, lots %v: %d keeps %g of what it won, want %g", devices, lots, i, a.keeps, want)
			}
		}
	})
}

// No bidder gains by a bid other than its true valuation.
func TestPartialAllocationRewardsTheTruth(t *testing.T) {
	worth := func(a award, gain float64) float64 {
		if !a.won {
			return 0
		}
		return gain + math.Log(a.keeps)
	}
	rapid.Check(t, func(t *rapid.T) {
		devices, lots := drawLots(t)
		for i, l := range lots {
			honest := worth(partialAllocation(devices, lots)[i], l.gain)
			lots[i].gain = rapid.Float64Range(0.01, 5).Draw(t, "said")
			if got := worth(partialAllocation(devices, lots)[i], l.gain); got > honest+1e-9 {
				t.Fatalf("%d devices, lots %v: %d gains %g, with another bid it gets %g instead of %g", devices, lots, i, l.gain, got, honest)
			}
			lots[i].gain = l.gain
		}
	})
}

// Of three bidders for one device, with valuations 3, 4 and 2, the second wins and keeps 1/3
// of its lot. If all lots fit, each winner keeps its whole lot.
func TestPartialAllocationKnownAnswers(t *testing.T) {
	got := partialAllocation(1, []lot{{1, math.Log(3)}, {1, math.Log(4)}, {1, math.Log(2)}})
	if got[0].won || !got[1].won || got[2].won || math.Abs(got[1].keeps-1.0/3) > 1e-12 {
		t.Errorf("of valuations 3, 4 and 2 for one device: %v, want the second to keep 1/3", got)
	}
	for i, a := range partialAllocation(3, []lot{{2, 1}, {1, 2}}) {
		if !a.won || a.keeps != 1 {
			t.Errorf("there is room for all: %d gets %v", i, a)
		}
	}
}
