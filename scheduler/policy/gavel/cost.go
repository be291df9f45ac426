package gavel

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Cost is the registry entry of policy gavel-cost.
var Cost = policy.Info{
	Name:    "gavel-cost",
	Doc:     "maximises the sum of normalised throughputs per dollar; runs a job only where its throughput per dollar pays (Narayanan et al., Gavel, OSDI 2020, section 4.2)",
	Options: costOptions,
	New:     newGavelCost,
}

var costOptions = append([]policy.Option{
	{Name: "prices", Default: "", Example: "v100=3/k80=0.5", Doc: "TYPE=PRICE/TYPE=PRICE...: price of a device per hour, 1 for other types"},
	{Name: "slo", Default: "false", Doc: "keep deadlines where possible"},
}, solving...)

func newGavelCost(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(costOptions)
	slo := v.Bool("slo")
	if err := v.Err(); err != nil {
		return nil, err
	}
	prices := map[string]float64{}
	if text := v.Text("prices"); text != "" {
		for _, part := range strings.Split(text, "/") {
			name, number, _ := strings.Cut(part, "=")
			v, err := strconv.ParseFloat(number, 64)
			if err != nil || !(v > 0 && v <= 1e9) {
				return nil, fmt.Errorf("prices: %q is not TYPE=PRICE with a price above 0", part)
			}
			prices[name] = v
		}
	}
	return solved(d, Objective{Strict: true}, func(ctx context.Context, s *Shares) error {
		need := make([]float64, len(s.Jobs))
		if slo {
			var err error
			if need, err = s.deadlines(ctx); err != nil {
				return err
			}
		}
		return s.maxPerPrice(ctx, s.prices(prices), need)
	})
}

// prices returns the price of a device-hour of each group. byType has prefixes of
// accelerator names, in any case; the longest matching prefix counts.
func (s *Shares) prices(byType map[string]float64) []float64 {
	out := make([]float64, len(s.Devices))
	for g := range out {
		out[g] = 1
		longest := 0
		for name, price := range byType {
			if hasPrefixFold(s.Cluster.Groups[g].Accelerator.Name, name) && len(name) > longest {
				out[g], longest = price, len(name)
			}
		}
	}
	return out
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// maxPerPrice maximises the sum of levels divided by the price paid, subject to the
// throughput that each job needs. With y = t·X and the price of y fixed to 1 this is a
// linear program in y and t (Charnes and Cooper, 1962). Among the optima it takes the one
// with the highest sum of levels.
//
// Differs: Gavel's code maximises the sum over jobs of throughput divided by price, so
// that even the least throughput justifies any price.
func (s *Shares) maxPerPrice(ctx context.Context, price, need []float64) error {
	best, err := s.bestQuotient(ctx, price, need)
	if err != nil {
		return err
	}
	p := s.program()
	var worth []lp.Term
	for i := range s.Jobs {
		j := &s.Jobs[i]
		for k, w := range j.Candidates {
			worth = append(worth, lp.Term{Var: p.x[i][k], Coef: s.level(j)*w.Rate - best*(1-2*coarse)*price[w.Group]*w.load()})
		}
		if need[i] > 0 {
			p.AtLeast("", 1-2*coarse, p.throughput(i, 1/need[i])...)
		}
	}
	p.AtLeast("", 0, worth...)
	p.addLevels(1)
	_, err = p.solve(ctx)
	return err
}

// bestQuotient returns the highest sum of levels for a price of 1 per hour.
func (s *Shares) bestQuotient(ctx context.Context, price, need []float64) (float64, error) {
	p := s.scaledProgram()
	var bill []lp.Term
	for i := range s.Jobs {
		for k, w := range s.Jobs[i].Candidates {
			bill = append(bill, lp.Term{Var: p.x[i][k], Coef: price[w.Group] * w.load()})
		}
		if need[i] > 0 {
			p.AtLeast("", 0, append(p.throughput(i, 1/need[i]), lp.Term{Var: p.scale, Coef: -1})...)
		}
	}
	p.Equal("", 1, bill...)
	p.addLevels(1)
	sol, err := p.optimum(ctx)
	if err != nil {
		return 0, err
	}
	return sol.Objective, nil
}
