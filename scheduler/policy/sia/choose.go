package sia

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

// mostStates bounds the work of chooseExactly, states times configurations: about a tenth
// of a second. The number of states is bounded by a tenth of that: 160 MB for two rows.
const mostStates = 100_000_000

// Choose returns the configuration of each row, -1 = none, that minimises the sum of their
// costs, with cost wait for rows without one, subject to room, the devices of each group.
// It may begin at the prices of devices, by group, of a similar choice.
func Choose(ctx context.Context, rows []*Row, wait float64, room []int, prices []float64) (Choice, error) {
	work, states := 0, 1
	for _, n := range room {
		states *= n + 1
		if states > mostStates/10 {
			break
		}
	}
	for _, r := range rows {
		work += max(len(r.Cells), 1) * states
	}
	if work <= mostStates && states <= mostStates/10 {
		return Choice{Picks: chooseExactly(rows, wait, room), Proven: true}, nil
	}
	return chooseByPrices(ctx, rows, wait, room, prices)
}

// Choice is a solution of the integer program.
type Choice struct {
	Picks  []int     // configuration of each row, -1 = none
	Proven bool      // it is proven optimal
	Prices []float64 // of devices by group, nil if it needed none
	Points int       // price vectors tried
}

// chooseExactly is dynamic programming over the devices left in each group: with f_0 = 0,
//
//	f_i(left) = least of f_{i-1}(left) and, over c, f_{i-1}(left - devices of c) + cost_ic - wait
//
// is the minimal cost of rows 1..i with left devices. Ties go to no configuration, then to
// the first.
func chooseExactly(rows []*Row, wait float64, room []int) []int {
	const better = 1e-9 // than rounding
	stride, states := make([]int, len(room)), 1
	for g, n := range room {
		stride[g], states = states, states*(n+1)
	}
	taken := make([][]int16, len(rows)) // by row and state, configuration + 1
	before, after := make([]float64, states), make([]float64, states)
	for i, r := range rows {
		taken[i] = make([]int16, states)
		copy(after, before)
		for c := range r.Cells {
			cell := &r.Cells[c]
			cost := r.Costs[c] - wait
			if !(cost < 0) || cell.Devices > room[cell.Group] {
				continue
			}
			shift, block := cell.Devices*stride[cell.Group], (room[cell.Group]+1)*stride[cell.Group]
			for first := 0; first < states; first += block { // equal devices left in the later groups
				from := before[first : first+block-shift]
				to, by := after[first+shift:][:len(from)], taken[i][first+shift:][:len(from)]
				for k, sum := range from {
					if with := sum + cost; with < to[k]-better {
						to[k], by[k] = with, int16(c+1)
					}
				}
			}
		}
		before, after = after, before
	}
	picks, at := make([]int, len(rows)), states-1
	for i := len(rows) - 1; i >= 0; i-- {
		picks[i] = int(taken[i][at]) - 1
		if c := picks[i]; c >= 0 {
			at -= rows[i].Cells[c].Devices * stride[rows[i].Cells[c].Group]
		}
	}
	return picks
}

// chooseByPrices solves the problem as a multiple-choice knapsack.
func chooseByPrices(ctx context.Context, rows []*Row, wait float64, room []int, prices []float64) (Choice, error) {
	const gap = 1e-4 // Sia's solver stops there
	problem := lp.Choice{}
	for _, n := range room {
		problem.Capacity = append(problem.Capacity, float64(n))
	}
	for _, r := range rows {
		options, uses := make([]lp.Option, len(r.Cells)), make([]lp.Use, len(r.Cells))
		for c := range r.Cells {
			uses[c] = lp.Use{Resource: r.Cells[c].Group, Amount: float64(r.Cells[c].Devices)}
			options[c] = lp.Option{Value: max(wait-r.Costs[c], 0), Uses: uses[c : c+1 : c+1]}
		}
		problem.Groups = append(problem.Groups, options)
	}
	if len(prices) != len(room) {
		prices = nil
	}
	chosen, err := problem.Solve(ctx, lp.ChoiceOptions{Gap: gap, Prices: prices})
	if err != nil {
		return Choice{}, err
	}
	return Choice{chosen.Pick, chosen.Gap() <= gap, chosen.Prices, chosen.Points}, nil
}
