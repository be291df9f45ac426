package lp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func mustChoose(t testing.TB, c *Choice, o ChoiceOptions) *Chosen {
	t.Helper()
	got, err := c.Solve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// randomChoice returns groups with options of one resource or, if several, of up to three.
func randomChoice(r *rand.Rand, groups, resources, options int, several bool) *Choice {
	c := &Choice{}
	for range resources {
		c.Capacity = append(c.Capacity, float64(1+r.IntN(2+groups)))
	}
	for range groups {
		var list []Option
		for range r.IntN(options + 1) {
			o := Option{Value: math.Round(10*r.ExpFloat64()) - 1}
			first := r.IntN(resources)
			n := 1
			if several {
				n = r.IntN(min(3, resources) + 1)
			}
			for k := range n {
				o.Uses = append(o.Uses, Use{(first + k) % resources, float64(r.IntN(5))})
			}
			list = append(list, o)
		}
		c.Groups = append(c.Groups, list)
	}
	return c
}

// bruteForce tries every combination.
func (c *Choice) bruteForce() float64 {
	free := append([]float64(nil), c.Capacity...)
	var try func(g int) float64
	try = func(g int) float64 {
		if g == len(c.Groups) {
			return 0
		}
		best := try(g + 1)
		for _, o := range c.Groups[g] {
			fits := true
			for _, u := range o.Uses {
				free[u.Resource] -= u.Amount
				fits = fits && free[u.Resource] >= 0
			}
			if fits {
				best = math.Max(best, o.Value+try(g+1))
			}
			for _, u := range o.Uses {
				free[u.Resource] += u.Amount
			}
		}
		return best
	}
	return try(0)
}

// checkChosen reports picks that do not fit or have another value than reported.
func checkChosen(t *testing.T, name string, c *Choice, got *Chosen) {
	t.Helper()
	use := make([]float64, len(c.Capacity))
	value := 0.0
	for g, o := range got.Pick {
		if o < 0 {
			continue
		}
		value += c.Groups[g][o].Value
		for _, u := range c.Groups[g][o].Uses {
			use[u.Resource] += u.Amount
		}
	}
	for k, n := range c.Capacity {
		if use[k] > n+1e-9 {
			t.Errorf("%s: %g of %g of resource %d are used", name, use[k], n, k)
		}
	}
	if math.Abs(value-got.Value) > 1e-9*(1+math.Abs(value)) || got.Bound < got.Value {
		t.Errorf("%s: value %g, bound %g; the picks are worth %g", name, got.Value, got.Bound, value)
	}
}

func TestChoiceAgreesWithBruteForce(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 6))
		c := randomChoice(r, 1+r.IntN(6), 1+r.IntN(4), 5, seed%2 == 0)
		got := mustChoose(t, c, ChoiceOptions{})
		checkChosen(t, fmt.Sprint("seed ", seed), c, got)
		if want := c.bruteForce(); math.Abs(got.Value-want) > 1e-9 || math.Abs(got.Bound-want) > 1e-9*(1+want) {
			t.Errorf("seed %d: value %g, bound %g, want %g", seed, got.Value, got.Bound, want)
		}
	}
}

// Without search the bound is that of the linear relaxation.
func TestChoiceBoundIsTheRelaxation(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 8))
		c := randomChoice(r, 2+r.IntN(12), 1+r.IntN(4), 6, seed%2 == 0)
		got := mustChoose(t, c, ChoiceOptions{MaxNodes: -1})
		checkChosen(t, fmt.Sprint("seed ", seed), c, got)
		relaxed, err := c.relaxation().Solve(context.Background(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Bound-relaxed.Objective) > 1e-6*(1+relaxed.Objective) {
			t.Errorf("seed %d: bound %g, the relaxation's is %g", seed, got.Bound, relaxed.Objective)
		}
	}
}

// relaxation states c with x in [0, 1].
func (c *Choice) relaxation() *Problem {
	p := New(Maximize)
	used := make([][]Term, len(c.Capacity))
	for _, options := range c.Groups {
		var one []Term
		for _, o := range options {
			upper := Inf
			for _, u := range o.Uses {
				if u.Amount > c.Capacity[u.Resource] {
					upper = 0 // does not fit alone
				}
			}
			x := p.Var("", 0, upper, math.Max(0, o.Value))
			one = append(one, Term{x, 1})
			for _, u := range o.Uses {
				used[u.Resource] = append(used[u.Resource], Term{x, u.Amount})
			}
		}
		p.AtMost("", 1, one...)
	}
	for k, n := range c.Capacity {
		p.AtMost("", n, used[k]...)
	}
	return p
}

// Initial prices save points and change no bound.
func TestChoiceWarmStart(t *testing.T) {
	before, err := jobs(1, 300, 4, 20).Solve(context.Background(), ChoiceOptions{MaxNodes: -1})
	if err != nil {
		t.Fatal(err)
	}
	after := jobs(1, 300, 4, 20)
	after.Groups = after.Groups[5:] // some jobs have ended
	cold, err := after.Solve(context.Background(), ChoiceOptions{MaxNodes: -1})
	if err != nil {
		t.Fatal(err)
	}
	warm, err := after.Solve(context.Background(), ChoiceOptions{MaxNodes: -1, Prices: before.Prices})
	if err != nil {
		t.Fatal(err)
	}
	checkChosen(t, "warm", after, warm)
	near(t, "the bound", warm.Bound, cold.Bound)
	if warm.Points >= cold.Points {
		t.Errorf("%d points from prices, %d without", warm.Points, cold.Points)
	}
	t.Logf("%d points from prices, %d without", warm.Points, cold.Points)
	for _, p := range [][]float64{{1}, {1, 1, 1, -1}, {1, 1, 1, math.NaN()}} {
		if _, err := after.Solve(context.Background(), ChoiceOptions{Prices: p}); !errors.Is(err, ErrInvalid) {
			t.Errorf("error %v for prices %v, want ErrInvalid", err, p)
		}
	}
}

func TestChoiceRejects(t *testing.T) {
	for name, c := range map[string]*Choice{
		"capacity": {Capacity: []float64{-1}},
		"value":    {Groups: [][]Option{{{Value: math.NaN()}}}},
		"resource": {Groups: [][]Option{{{Value: 1, Uses: []Use{{0, 1}}}}}},
		"amount":   {Groups: [][]Option{{{Value: 1, Uses: []Use{{0, -1}}}}}, Capacity: []float64{1}},
	} {
		if _, err := c.Solve(context.Background(), ChoiceOptions{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}

// jobs returns the problem of a joint scheduler: jobs with plans on 1 to 16 devices of each type, with diminishing
// returns, and devices for about half of the jobs.
func jobs(seed uint64, jobs, types, plans int) *Choice {
	r := rand.New(rand.NewPCG(seed, 9))
	c := &Choice{}
	for range types {
		c.Capacity = append(c.Capacity, float64(2*jobs/types))
	}
	for range jobs {
		weight, scale := math.Exp(r.NormFloat64()), 0.3+0.6*r.Float64()
		var list []Option
		for k := range types {
			speed := float64(1+k) * math.Exp(r.NormFloat64()/3)
			for range plans {
				n := float64(int(1) << r.IntN(5))
				list = append(list, Option{Value: weight * speed * math.Pow(n, scale) * (0.7 + 0.3*r.Float64()), Uses: []Use{{k, n}}})
			}
		}
		c.Groups = append(c.Groups, list)
	}
	return c
}

func BenchmarkChoice(b *testing.B) {
	c := jobs(1, 1000, 4, 20)
	before, err := jobs(1, 990, 4, 20).Solve(context.Background(), ChoiceOptions{MaxNodes: -1})
	if err != nil {
		b.Fatal(err)
	}
	for _, run := range []struct {
		name string
		o    ChoiceOptions
	}{
		{"nodes=0", ChoiceOptions{MaxNodes: -1}},
		{"nodes=200000", ChoiceOptions{}},
		{"nodes=0/aim=0.001", ChoiceOptions{MaxNodes: -1, Gap: 1e-3}},
		{"nodes=0/aim=0.001/from=before", ChoiceOptions{MaxNodes: -1, Gap: 1e-3, Prices: before.Prices}},
	} {
		b.Run("jobs=1000/types=4/plans=20/"+run.name, func(b *testing.B) {
			done := reportCPU(b)
			var got *Chosen
			for b.Loop() {
				if got, err = c.Solve(context.Background(), run.o); err != nil {
					b.Fatal(err)
				}
			}
			done()
			b.ReportMetric(got.Gap(), "gap")
		})
	}
}

// Parts that the search skips are within the gap of the bound it proves. That bound can be far below the initial one.
func TestChoiceGapOfTheProvenBound(t *testing.T) {
	c := Choice{Capacity: []float64{2}, Groups: [][]Option{
		{{Value: 1.0998779, Uses: []Use{{0, 1}}}}, {{Value: 1.0999924, Uses: []Use{{0, 2}}}}}}
	got, err := c.Solve(t.Context(), ChoiceOptions{Gap: 1e-4})
	if err != nil || got.Gap() > 1e-4 {
		t.Errorf("%+v, gap %g, error %v", got, got.Gap(), err)
	}
}

// Many equal groups choose alike at any prices, which is far from their best answer: that mixes the options. Without
// search, rounding alone must come near the bound.
func TestChoiceRoundsEqualGroups(t *testing.T) {
	const seeds = 40
	sum := 0.0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 77))
		n, types := 100+r.IntN(600), 1+r.IntN(4)
		c := jobs(1000+seed, 3, types, 10)
		kinds := c.Groups
		c.Groups = nil
		for range n {
			c.Groups = append(c.Groups, kinds[r.IntN(len(kinds))])
		}
		for k := range c.Capacity { // from one device to two per job
			c.Capacity[k] = math.Floor(math.Pow(float64(2*n), r.Float64()))
		}
		got := mustChoose(t, c, ChoiceOptions{MaxNodes: -1})
		checkChosen(t, fmt.Sprint("seed ", seed), c, got)
		sum += got.Gap()
	}
	if mean := sum / seeds; mean > 0.002 {
		t.Errorf("the mean gap is %.3g, want at most 0.002", mean)
	}
}

// With many resources the relaxation needs more points than those around initial prices.
func TestChoiceOfManyResources(t *testing.T) {
	const resources = 40
	r := rand.New(rand.NewPCG(1, 40))
	c := &Choice{Capacity: slices.Repeat([]float64{20}, resources)}
	for range 4 * resources {
		var options []Option
		for range 6 {
			k, value := r.IntN(resources), math.Exp(r.NormFloat64()/2)
			for _, n := range []float64{2, 4, 8, 16} {
				options = append(options, Option{Value: value * math.Pow(n, 0.7), Uses: []Use{{k, n}}})
			}
		}
		c.Groups = append(c.Groups, options)
	}
	cold := mustChoose(t, c, ChoiceOptions{MaxNodes: -1})
	checkChosen(t, "cold", c, cold)
	warm := mustChoose(t, c, ChoiceOptions{MaxNodes: -1, Prices: cold.Prices})
	checkChosen(t, "warm", c, warm)
	if cold.Gap() > 0.0155 || warm.Gap() > 0.0075 {
		t.Errorf("gaps %.4f and %.4f with %d and %d points, want at most 0.0155 and 0.0075", cold.Gap(), warm.Gap(), cold.Points, warm.Points)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	none, err := c.Solve(ended, ChoiceOptions{MaxNodes: -1})
	if err != nil {
		t.Fatal(err)
	}
	checkChosen(t, "ended", c, none)
}
