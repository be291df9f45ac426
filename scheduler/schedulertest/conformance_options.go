package schedulertest

import (
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/scheduler/policy"
)

// ConformanceOptions runs a policy with each of its options at policy.Option.Other, the
// others at their defaults, on a few fixed cases: every job ends, Decide does not change
// the snapshot, returns the same twice, and settles. Options without another value, such
// as files, are left out.
func ConformanceOptions(t *testing.T, options []policy.Option, make func(options map[string]string) Maker) {
	cases := optionCases()
	if testing.Short() {
		cases = cases[:1]
	}
	for _, o := range options {
		if o.Other() == "" {
			continue
		}
		t.Run(o.Name+"="+o.Other(), func(t *testing.T) {
			for _, c := range cases {
				conformOption(t, make(map[string]string{o.Name: o.Other()}), c)
			}
		})
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
