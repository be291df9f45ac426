package accuracy

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// minPlans is how many different plans make a choice.
const minPlans = 3

// Regret is what choosing by prediction costs: in every group of measured
// alternatives, the time of the one predicted fastest over that of the one
// that is, less 1.
type Regret struct {
	Groups int     `json:"groups"`
	Mean   float64 `json:"mean"` // 0 without groups
	Worst  float64 `json:"worst"`
}

// choice is what alternatives have in common: they do the same work on as many
// of the same devices. The training stack and where the rows are from count,
// since a plan can be chosen, and not its source.
type choice struct {
	part        string
	model       spec.Model
	accelerator string
	devices     int
	batch       int
	seq         int
	framework   string
}

func choiceOf(a *answer) choice {
	c := &a.config
	devices := c.Shape.Total()
	if devices == 0 {
		devices = c.Plan.Devices()
	}
	return choice{a.part, c.Model, c.Accelerator.Name, devices, c.Plan.GlobalBatch(), c.Seq(), c.Framework}
}

// choices groups answers by what they are alternatives for, and returns the
// groups of at least minPlans different plans in order of their first answers.
// Answers that were refused are no alternatives. Repeats of a configuration are
// one alternative, at the median of their times.
func choices(answers []answer) [][]answer {
	groups := map[choice][]answer{}
	var order []choice
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		k := choiceOf(&a)
		if _, ok := groups[k]; !ok {
			order = append(order, k)
		}
		groups[k] = append(groups[k], a)
	}
	var out [][]answer
	for _, k := range order {
		if g := mergeAlternatives(groups[k]); plans(g) >= minPlans {
			out = append(out, g)
		}
	}
	return out
}

// regret returns what choosing among the answers costs, over all choices.
func regret(answers []answer) Regret {
	var all []float64
	for _, g := range choices(answers) {
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

// mergeAlternatives returns one answer per configuration, in canonical order.
func mergeAlternatives(g []answer) []answer {
	g = slices.Clone(g)
	slices.SortStableFunc(g, func(a, b answer) int {
		return cmp.Or(perfmodel.CompareConfigs(a.config, b.config), cmp.Compare(a.id, b.id))
	})
	var out []answer
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
func plans(g []answer) int {
	seen := map[spec.Plan]bool{}
	for _, a := range g {
		seen[a.config.Plan.Normal()] = true
	}
	return len(seen)
}

// regretOf returns how much longer the alternative predicted fastest takes than
// the fastest, as a share of the latter.
func regretOf(g []answer) float64 { return pickOf(g).want/bestOf(g).want - 1 }

// pickOf returns the alternative predicted fastest, the first of equals.
func pickOf(g []answer) answer {
	return slices.MinFunc(g, func(a, b answer) int { return cmp.Compare(a.got, b.got) })
}

// bestOf returns the alternative that was fastest, the first of equals.
func bestOf(g []answer) answer {
	return slices.MinFunc(g, func(a, b answer) int { return cmp.Compare(a.want, b.want) })
}
