package hybrid

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/drift"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// driftSite is a made site with rows of different plans over tp and dp, on nodes with a slow network.
type driftSite struct {
	rng     *rand.Rand
	physics *analytic.Physics
}

func newDriftSite(seed uint64) *driftSite {
	s := &driftSite{rng: rand.New(rand.NewPCG(seed, 11))}
	l := analytic.Layout{Frameworks: []string{"Megatron Core"}, Sites: []analytic.Site{{Framework: "Megatron Core", Accelerator: "A"}}}
	x := slices.Clone(analytic.Shipped().DistributionOf(&l).Mean)
	for e := range 4 {
		x[l.SiteAt(l.Sites[0])+e] += 0.1 * s.rng.NormFloat64()
	}
	s.physics = analytic.Shipped().PhysicsAt(&l, x)
	return s
}

// config returns a random configuration.
func (s *driftSite) config() spec.Config {
	c := perftest.GPT(spec.Plan{DP: 2 << s.rng.IntN(4), TP: 2 << s.rng.IntN(3), MicroBatch: 1 << s.rng.IntN(3), AccumSteps: 1 << s.rng.IntN(2), ZeRO: 1, Precision: spec.BF16}.Normal())
	c.Link.InterBps = 12.5e9
	return c
}

// row returns a measurement of day with some noise, if the time of a part is factor times the usual one.
func (s *driftSite) row(t testing.TB, c spec.Config, day, part int, factor, noise float64) spec.Measurement {
	t.Helper()
	m := spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", At: time.Date(2026, 4, 1+day, 9, 0, 0, 0, time.UTC)}
	parts, err := s.physics.Explain(&c)
	if err != nil {
		t.Fatal(err)
	}
	of, err := rowOf(&m, s.physics)
	if err != nil {
		t.Fatal(err)
	}
	m.StepSec = []float64{parts.Total() * math.Exp(of.Shift(part, math.Log(factor))+noise*s.rng.NormFloat64())}
	return m
}

// rows returns a row a day with 3 % noise: older ones, then newer ones with factor on a part. With again, the newer rows
// repeat the plans of the older ones.
func (s *driftSite) rows(t testing.TB, older, newer, part int, factor float64, again bool) (out []spec.Measurement) {
	t.Helper()
	for day := range older + newer {
		c, f := s.config(), 1.0
		if day >= older {
			f = factor
			if again {
				c = out[day-older].Config
			}
		}
		out = append(out, s.row(t, c, day, part, f, 0.03))
	}
	return out
}

// TestDriftIsFound: a network 20 % slower since row 20 of 40 is found at nine in ten sites, with its part and within one
// row of its date (in 200 sites: all, and 97 %).
func TestDriftIsFound(t *testing.T) {
	const sites = 20
	for _, again := range []bool{true, false} {
		found, factor := 0, 0.0
		for seed := range uint64(sites) {
			drifts := condition(t, newDriftSite(seed).rows(t, 20, 20, drift.Network, 1.2, again)).Drifts()
			if len(drifts) != 1 {
				continue
			}
			d := drifts[0]
			day := d.Since.Sub(time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)).Hours() / 24
			if d.Part == "network" && d.Stack == "Megatron Core" && d.Accelerator == "A" && math.Abs(day-20) <= 1 && d.Older+d.Newer == 40 && d.Older == int(day) {
				found++
				factor += d.Factor
			}
		}
		if mean := factor / float64(found); found < sites*9/10 || math.Abs(mean-1.2) > 0.02 {
			t.Errorf("plans repeated %v: found at %d of %d sites, %.3f times the network time, want 9 in 10 and 1.2", again, found, sites, mean)
		}
	}
}

// TestDriftOfOtherParts: also faster computing is found, as what it is.
func TestDriftOfOtherParts(t *testing.T) {
	s := newDriftSite(3)
	drifts := condition(t, s.rows(t, 20, 20, drift.Compute, 0.7, true)).Drifts()
	if len(drifts) != 1 || drifts[0].Part != "compute" || math.Abs(drifts[0].Factor-0.7) > 0.05 {
		t.Errorf("%v, want compute time 30 %% shorter", drifts)
	}
}

// TestTwoDrifts: the rows since a change may change again.
func TestTwoDrifts(t *testing.T) {
	s := newDriftSite(4)
	rows := s.rows(t, 20, 20, drift.Network, 2.5, true)
	for day := range 20 {
		rows = append(rows, s.row(t, rows[day].Config, 40+day, drift.Network, 2.5*1.4, 0.03))
	}
	drifts := condition(t, rows).Drifts()
	if len(drifts) != 2 || math.Abs(drifts[0].Factor-2.75) > 0.4 || math.Abs(drifts[1].Factor-1.4) > 0.1 || drifts[1].Older != 20 || drifts[1].Newer != 20 {
		t.Errorf("%v, want network times more than 2.5 and then 1.4 times as long", drifts)
	}
}

// TestNoDriftWithoutOne: at most one in a hundred sites without a change has a flag, here none, and then rows with a time
// of measurement count as if they had none, bit by bit.
func TestNoDriftWithoutOne(t *testing.T) {
	sites := uint64(200)
	if testing.Short() {
		sites = 40
	}
	flags := uint64(0)
	for seed := range sites {
		rows := newDriftSite(seed).rows(t, 20, 20, drift.Network, 1, seed%2 == 0)
		h := condition(t, rows)
		if len(h.Drifts()) > 0 {
			flags++
			continue
		}
		if seed > 3 {
			continue
		}
		for i := range rows {
			rows[i].At = time.Time{}
		}
		if !bytes.Equal(recordOf(t, h), recordOf(t, condition(t, rows))) {
			t.Errorf("site %d: times of measurement change the fit", seed)
		}
	}
	if 100*flags > sites {
		t.Errorf("%d of %d sites without a change have a flag", flags, sites)
	}
}

func recordOf(t testing.TB, h *Model) []byte {
	t.Helper()
	b, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDriftFadesOldRows: after a flag, predictions are those of the newer rows, also if the older ones are many more, and
// with intervals that contain them; without times of measurement they are between both. A stored fit predicts the same.
func TestDriftFadesOldRows(t *testing.T) {
	for _, n := range [][2]int{{20, 20}, {80, 12}} {
		s := newDriftSite(5)
		rows := s.rows(t, n[0], n[1], drift.Network, 1.5, false)
		var held []spec.Measurement
		for range 40 {
			held = append(held, s.row(t, s.config(), 200, drift.Network, 1.5, 0))
		}
		h := condition(t, rows)
		if len(h.Drifts()) != 1 {
			t.Fatalf("%d and %d rows: %v, want one change", n[0], n[1], h.Drifts())
		}
		timeless := slices.Clone(rows)
		for i := range timeless {
			timeless[i].At = time.Time{}
		}
		fresh, faded, all := meanError(t, condition(t, rows[n[0]:]), held), meanError(t, h, held), meanError(t, condition(t, timeless), held)
		if faded > 0.5*all || faded > 1.5*fresh+0.01 {
			t.Errorf("%d old and %d new rows: mean error %.3f, by the new rows alone %.3f, without times %.3f", n[0], n[1], faded, fresh, all)
		}
		loaded, err := Shipped().Family().Load(recordOf(t, h))
		if err != nil {
			t.Fatal(err)
		}
		inside := 0
		for _, m := range held {
			sec, lo, hi := secondsOf(t, h, m.Config)
			if again, _, _ := secondsOf(t, loaded, m.Config); again != sec {
				t.Fatalf("%g s before the fit is stored, %g s after", sec, again)
			}
			if lo <= m.StepSec[0] && m.StepSec[0] <= hi {
				inside++
			}
		}
		if inside < 34 {
			t.Errorf("%d old and %d new rows: %d of 40 times are inside the 90 %% interval", n[0], n[1], inside)
		}
	}
}

// TestDriftDoesNotDependOnOrder: neither on the order of rows nor on copies of some, also with the time of another zone.
// Rows without a time count as current.
func TestDriftDoesNotDependOnOrder(t *testing.T) {
	s := newDriftSite(6)
	rows := s.rows(t, 20, 20, drift.Network, 1.5, true)
	undated := s.row(t, s.config(), 0, drift.Network, 1.5, 0.03)
	undated.At = time.Time{}
	rows = append(rows, undated)
	want := condition(t, rows)
	if d := want.Drifts(); len(d) != 1 || d[0].Older+d[0].Newer != 40 {
		t.Fatalf("%v, want one change among 40 rows", d)
	}
	noisy := 0
	for _, sd := range want.base.residual.ExtraSD {
		if sd > 0.02 {
			noisy++
		}
	}
	if all := len(want.base.residual.ExtraSD); 2*noisy != all-1 {
		t.Errorf("%d of %d configurations have additional noise, want each of before the change, and none since", noisy, all)
	}
	more := slices.Concat(rows, rows[3:9], rows[30:35])
	for i := len(rows); i < len(more); i++ {
		more[i].At = more[i].At.In(time.FixedZone("east", 3600))
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	got := condition(t, more)
	if !bytes.Equal(recordOf(t, want), recordOf(t, got)) || len(got.Drifts()) != 1 || got.Drifts()[0] != want.Drifts()[0] {
		t.Errorf("in another order, with copies: %v, want the same fit and %v", got.Drifts(), want.Drifts())
	}
}

// TestDriftOfOneSite: rows of another device are not old because those of one changed. The card of each has its own
// warnings.
func TestDriftOfOneSite(t *testing.T) {
	s := newDriftSite(7)
	rows := s.rows(t, 20, 20, drift.Network, 1.5, true)
	other := s.rows(t, 20, 20, drift.Network, 1, true)
	for i := range other {
		other[i].Config.Accelerator.Name = "B"
	}
	h := condition(t, slices.Concat(rows, other))
	if d := h.Drifts(); len(d) != 1 || d[0].Accelerator != "A" {
		t.Fatalf("%v, want a change of A", d)
	}
	part, card := h.Of(rows[0].Config.Key())
	_, unchanged := h.Of(other[0].Config.Key())
	if len(card.Drifts) != 1 || len(part.(*Model).Drifts()) != 1 || !slices.Contains(card.Warnings, card.Drifts[0].String()) || len(unchanged.Drifts) != 0 {
		t.Errorf("cards %+v and %+v", card, unchanged)
	}
}
