package drift

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
)

// site returns n rows, one an hour, with errors of 5 %; since row change the time of a part is longer by log.
func site(seed uint64, n, change, part int, log float64) []Row {
	rng := rand.New(rand.NewPCG(seed, 5))
	rows := make([]Row, n)
	for i := range rows {
		r := &rows[i]
		r.At = time.Date(2026, 5, 3, i, 0, 0, 0, time.UTC)
		r.Share[Network], r.Share[Launch] = 0.2+0.4*rng.Float64(), 0.1*rng.Float64()
		r.Share[Compute] = 1 - r.Share[Network] - r.Share[Launch]
		r.Error = noise * rng.NormFloat64()
		if i >= change {
			r.Error += r.Shift(part, log)
		}
	}
	return rows
}

const noise = 0.05

// independent are covariances of rows without a common error; the second is that of the rows of site.
var independent = []func(i, j int) float64{scatter(2 * noise), scatter(noise), scatter(noise / 2)}

func scatter(sd float64) func(i, j int) float64 {
	return func(i, j int) float64 {
		if i == j {
			return sd * sd
		}
		return 0
	}
}

func find(t *testing.T, rows []Row, sites int) (Change, bool) {
	t.Helper()
	c, ok, err := Find(t.Context(), rows, independent, sites)
	if err != nil {
		t.Fatal(err)
	}
	return c, ok
}

// TestShift: ln T of a step with a part that takes longer.
func TestShift(t *testing.T) {
	r := Row{Share: [Parts]float64{Network: 0.25}}
	if got, want := r.Shift(Network, math.Log(3)), math.Log(0.75+0.25*3); math.Abs(got-want) > 1e-12 {
		t.Errorf("ln T rises by %g, want %g", got, want)
	}
}

// TestFind: the date, the part and the size of large changes are found.
func TestFind(t *testing.T) {
	for part := range Launch {
		for _, log := range []float64{math.Log(0.6), math.Log(2)} {
			c, ok := find(t, site(1, 40, 15, part, log), 1)
			if !ok || c.Part != part || !c.Since.Equal(time.Date(2026, 5, 3, 15, 0, 0, 0, time.UTC)) || c.Older != 15 || c.Newer != 25 || math.Abs(c.Log-log) > 0.1 {
				t.Errorf("%s times e^%.2f since row 15: %+v, %v", Names[part], log, c, ok)
			}
		}
	}
}

// TestFindFalseAlarms: among sites without a change at most one in a hundred has one.
func TestFindFalseAlarms(t *testing.T) {
	const sites = 1000
	found := 0
	for seed := range uint64(sites) {
		if _, ok := find(t, site(seed, 24, 0, 0, 0), 1); ok {
			found++
		}
	}
	if found > sites/100 {
		t.Errorf("a change is found at %d of %d sites", found, sites)
	}
}

// TestFindAmongSites: of more sites, each needs more evidence.
func TestFindAmongSites(t *testing.T) {
	rows := site(1, 40, 15, Network, math.Log(1.3))
	last := true
	for sites := 1; sites < 1e9; sites *= 10 {
		_, ok := find(t, rows, sites)
		if ok && !last {
			t.Errorf("a change is found among %d sites, but not among %d", sites, sites/10)
		}
		last = ok
	}
	if _, ok := find(t, rows, 1); !ok || last {
		t.Error("want a change of one site, but not of 10^8")
	}
}

// TestFindNeedsRows: two rows on one side may be outliers, and rows of one time have no order.
func TestFindNeedsRows(t *testing.T) {
	if c, ok := find(t, site(1, 20, 18, Compute, math.Log(3)), 1); ok && c.Newer < minRows {
		t.Errorf("%+v with %d rows since", c, c.Newer)
	}
	for n := range LeastRows {
		if c, ok := find(t, site(1, n, n/2, Compute, math.Log(3)), 1); ok {
			t.Errorf("%+v of %d rows", c, n)
		}
	}
	rows := site(1, 40, 15, Network, math.Log(2))
	for i := range rows {
		rows[i].At = rows[0].At
	}
	if c, ok := find(t, rows, 1); ok {
		t.Errorf("%+v of rows of one time", c)
	}
}

// TestFindOnlyWhatLasts: a change in 13 minutes of rows is none, since it may be gone in the next; in 40 minutes it is.
func TestFindOnlyWhatLasts(t *testing.T) {
	for seconds, want := range map[int]bool{20: false, 60: true} {
		rows := site(1, 40, 20, Compute, math.Log(2))
		for i := range rows {
			rows[i].At = rows[0].At.Add(time.Duration(i*seconds) * time.Second)
		}
		if c, ok := find(t, rows, 1); ok != want {
			t.Errorf("rows every %d seconds: %+v, %v", seconds, c, ok)
		}
	}
}

// TestFindDoesNotDependOnOrder, also not with covariances of pairs.
func TestFindDoesNotDependOnOrder(t *testing.T) {
	rows := site(2, 30, 12, Network, math.Log(2))
	between := func(a, b int) float64 { return 0.01 * math.Exp(-math.Abs(float64(a-b))) }
	order := rand.New(rand.NewPCG(2, 2)).Perm(len(rows))
	shuffled := make([]Row, len(rows))
	for i, k := range order {
		shuffled[i] = rows[k]
	}
	want, ok, err := Find(t.Context(), rows, []func(i, j int) float64{between}, 1)
	got, found, again := Find(t.Context(), shuffled, []func(i, j int) float64{func(i, j int) float64 { return between(order[i], order[j]) }}, 1)
	if err != nil || again != nil || !ok || !found || got != want {
		t.Errorf("%+v, %v, %v, want %+v, %v, %v", got, found, again, want, ok, err)
	}
}

// TestFindErrors: a covariance that is none, and the end of the context.
func TestFindErrors(t *testing.T) {
	rows := site(1, 10, 5, Network, 0.1)
	if _, _, err := Find(t.Context(), rows, []func(i, j int) float64{func(i, j int) float64 { return -1 }}, 1); !errors.Is(err, perfmodel.ErrNotFinite) {
		t.Errorf("negative variances: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Find(ctx, rows, independent, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestCandidates: changes in both directions are equally likely, and small ones more than large ones.
func TestCandidates(t *testing.T) {
	sizes, weights := candidates()
	sum, mean := 0.0, 0.0
	for i, w := range weights {
		sum, mean = sum+w, mean+w*sizes[i]
	}
	if math.Abs(sum-1) > 1e-12 || math.Abs(mean) > 1e-12 || math.Abs(slices.Max(sizes)-math.Log(most)) > step || sizes[0] != math.Log(least) || weights[0] <= weights[len(weights)-1] {
		t.Errorf("sizes %.2f with probabilities %.3f", sizes, weights)
	}
}
