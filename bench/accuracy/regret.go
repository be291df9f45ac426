package accuracy

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// minPlans is the least number of different plans in a choice.
const minPlans = 3

// Regret is the cost of choosing by prediction: for each group of measured
// alternatives, the time of the one predicted fastest divided by that of the
// fastest, minus 1.
type Regret struct {
	Groups int     `json:"groups"`
	Mean   float64 `json:"mean"` // 0 without groups
	Worst  float64 `json:"worst"`
}

// choice has the properties that alternatives share: the same work on the same
// number and type of devices, by one training stack, from one source. A scheduler
// chooses the plan, not these.
type choice struct {
	part        string
	model       spec.Model
	accelerator string
	devices     int
	batch       int
	seq         int
	framework   string
}

func choiceOf(a *prediction) choice {
	c := &a.config
	devices := c.Shape.Total()
	if devices == 0 {
		devices = c.Plan.Devices()
	}
	return choice{a.part, c.Model, c.Accelerator.Name, devices, c.Plan.GlobalBatch(), c.Seq(), c.Framework}
}

// choices groups predictions by choice, and returns the groups with at least minPlans
// different plans in order of first appearance. Refused rows are left out. Repeats
// of a configuration are one alternative, with the median of their times.
func choices(predictions []prediction) [][]prediction {
	groups := map[choice][]prediction{}
	var order []choice
	for _, a := range predictions {
		if a.err != nil {
			continue
		}
		k := choiceOf(&a)
		if _, ok := groups[k]; !ok {
			order = append(order, k)
		}
		groups[k] = append(groups[k], a)
	}
	var out [][]prediction
	for _, k := range order {
		if g := mergeAlternatives(groups[k]); plans(g) >= minPlans {
			out = append(out, g)
		}
	}
	return out
}

// regret returns the regret over all choices among the predictions.
func regret(predictions []prediction) Regret {
	var all []float64
	for _, g := range choices(predictions) {
		all = append(all, regretOf(g))
	}
	return regretOver(all)
}

// regretOver summarizes the regrets of choices.
func regretOver(all []float64) Regret {
	r := Regret{Groups: len(all)}
	if r.Groups > 0 {
		r.Mean, r.Worst = mean(all), slices.Max(all)
	}
	return r
}

// mergeAlternatives returns one prediction per configuration, in canonical order.
func mergeAlternatives(g []prediction) []prediction {
	g = slices.Clone(g)
	slices.SortStableFunc(g, func(a, b prediction) int {
		return cmp.Or(perfmodel.CompareConfigs(a.config, b.config), cmp.Compare(a.id, b.id))
	})
	var out []prediction
	for i := 0; i < len(g); {
		j := i
		var secs []float64
		for ; j < len(g) && g[j].config == g[i].config; j++ {
			secs = append(secs, g[j].want)
		}
		a := g[i]
		a.want = stats.Median(secs)
		out = append(out, a)
		i = j
	}
	return out
}

// plans counts the different plans of a group.
func plans(g []prediction) int {
	seen := map[spec.Plan]bool{}
	for _, a := range g {
		seen[a.config.Plan.Normal()] = true
	}
	return len(seen)
}

// regretOf returns how much longer the alternative predicted fastest takes than
// the fastest, as a share of the latter.
func regretOf(g []prediction) float64 { return pickOf(g).want/bestOf(g).want - 1 }

// pickOf returns the alternative predicted fastest, the first of equals.
func pickOf(g []prediction) prediction {
	return slices.MinFunc(g, func(a, b prediction) int { return cmp.Compare(a.got, b.got) })
}

// bestOf returns the alternative measured fastest, the first of equals.
func bestOf(g []prediction) prediction {
	return slices.MinFunc(g, func(a, b prediction) int { return cmp.Compare(a.want, b.want) })
}
