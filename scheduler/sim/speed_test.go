package sim_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Over many nodes ln(speed) has the configured deviation and speeds have mean 1. Over a long
// time a node is slow for the configured share.
func TestVariation(t *testing.T) {
	v := sim.Variation{Sigma: 0.2, Every: 9 * time.Hour, Last: time.Hour, Slow: 0.5, Seed: 3}
	if err := v.Validate(); err != nil {
		t.Fatal(err)
	}
	const nodes = 4000
	var sum, logs, squares float64
	fastest := v.Fastest(nodes)
	for i := range nodes {
		usual, _ := sim.Variation{Sigma: v.Sigma, Seed: v.Seed}.Node(i)(0)
		if usual > fastest {
			t.Fatalf("node %d runs at %g, the fastest at %g", i, usual, fastest)
		}
		sum, logs, squares = sum+usual, logs+math.Log(usual), squares+math.Log(usual)*math.Log(usual)
	}
	mean, sd := sum/nodes, math.Sqrt(squares/nodes-logs*logs/nodes/nodes)
	if math.Abs(mean-1) > 4*0.2/math.Sqrt(nodes) || math.Abs(sd-0.2) > 4*0.2/math.Sqrt(2*nodes) {
		t.Errorf("mean %g, deviation of the logarithm %g; want 1, 0.2 within four standard errors", mean, sd)
	}
	at := v.Node(0)
	usual := v.Fastest(1)
	const spells = 4000
	var slow time.Duration
	end := spells * 10 * time.Hour
	for now := time.Duration(0); now < end; {
		speed, until := at(now)
		if until <= now {
			t.Fatalf("the speed at %v stays until %v", now, until)
		}
		if speed == usual*v.Slow {
			slow += until - now
		} else if speed != usual {
			t.Fatalf("speed %g, want %g or half of it", speed, usual)
		}
		now = until
	}
	if share := slow.Hours() / end.Hours(); math.Abs(share-0.1) > 4*0.1/math.Sqrt(spells)*1.3 {
		t.Errorf("slow for %g of the time, want 0.1", share)
	}
	// A second pass from the beginning gives the same speeds.
	other := v.Node(0)
	for _, now := range []time.Duration{end, 0, end / 2, 20 * time.Hour} {
		a, untilA := at(now)
		if b, untilB := other(now); a != b || untilA != untilB {
			t.Errorf("at %v: %g until %v, then %g until %v", now, a, untilA, b, untilB)
		}
	}
}

func TestVariationRefusesFigures(t *testing.T) {
	for want, v := range map[string]sim.Variation{
		"sigma of -1":         {Sigma: -1},
		"sigma of NaN":        {Sigma: math.NaN()},
		"every 1ns":           {Every: 1},
		"spells of 0s":        {Every: time.Hour, Slow: 0.5},
		"spells of 1 times":   {Every: time.Hour, Last: time.Hour, Slow: 1},
		"spells of NaN times": {Every: time.Hour, Last: time.Hour, Slow: math.NaN()},
	} {
		if err := v.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error that says %q", v, err, want)
		}
	}
}

// slowNode is a cluster with a second node at a quarter of the speed from 20 s to 40 s.
type slowNode struct{}

func (slowNode) Node(node int) func(time.Duration) (float64, time.Duration) {
	return func(t time.Duration) (float64, time.Duration) {
		switch {
		case node == 0 || t >= 40*s:
			return 1, 1 << 62
		case t >= 20*s:
			return 0.25, 40 * s
		}
		return 1, 20 * s
	}
}

func (slowNode) Fastest(int) float64 { return 1 }

// Both jobs train from 10 s on. a is alone on the good node; b spans both and
// makes 80 steps by 20 s, 40 until 40 s, and the last 80 until 50 s.
func TestGangRunsAtItsSlowestNode(t *testing.T) {
	c := config(script{{grants: map[spec.JobID]string{"a": "0:3", "b": "0:1+1:3"}}}, job("a", 0, 3, 150), job("b", 0, 4, 120))
	c.Speeds = slowNode{}
	r := mustRun(t, c)
	if r.Jobs[0].End != 60*s || r.Jobs[1].End != 55*s {
		t.Errorf("ends at %v and %v, want 1m0s and 55s", r.Jobs[0].End, r.Jobs[1].End)
	}
}
