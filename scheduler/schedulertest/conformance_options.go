package schedulertest

import (
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/scheduler/policy"
)

// ConformanceOptions runs a policy with each of its options at policy.Option.Other, the
// others at their defaults, and with all of them at Other together, except those that
// conflict with an earlier one. On a few fixed cases every job ends, Decide does not change
// the snapshot, returns the same twice, and settles. Options without another value, such as
// files, are left out.
func ConformanceOptions(t *testing.T, options []policy.Option, make func(options map[string]string) Maker) {
	cases := optionCases()
	if testing.Short() {
		cases = cases[:1]
	}
	run := func(name string, set map[string]string) {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				conformOption(t, make(set), c)
			}
		})
	}
	together := map[string]string{}
	for _, o := range options {
		if other := o.Other(); other != "" {
			run(o.Name+"="+other, map[string]string{o.Name: other})
			together[o.Name] = other
			if _, err := make(together)(cases[0].World.Oracle(0.2, 7)); err != nil {
				delete(together, o.Name)
			}
		}
	}
	if len(together) > 1 {
		run("together", together)
	}
}

// optionCases are the fixed cases of ConformanceOptions, with fewer jobs than others.
var optionCases = sync.OnceValue(func() (out []Case) {
	for seed := range 4 {
		c := rapid.Custom(DrawCase).Example(seed)
		c.Jobs = c.Jobs[:min(len(c.Jobs), 10)]
		out = append(out, c)
	}
	return out
})

func conformOption(t *testing.T, make Maker, c Case) {
	p := policyOf(t, make, c.World.Oracle(0.2, 7))
	checkFinished(t, runWith(t, c, settled(t, p, twice{t, p}), c.World.Truth(c.Cluster)))
}
