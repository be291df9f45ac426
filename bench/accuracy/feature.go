package accuracy

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// sizesOf returns the sizes of a configuration; their logarithms are features. p is its normal plan.
func sizesOf(c *spec.Config, p *spec.Plan) []int {
	return []int{p.Devices(), p.DP, p.TP, p.PP, p.CP, p.EP, p.VirtualStages, p.MicroBatch, p.AccumSteps, p.ZeRO + 1, p.Shards(),
		c.Seq(), c.Model.Hidden, c.Model.Layers}
}

// namesOf returns the names in a configuration. Each value of each is a feature.
func namesOf(c *spec.Config, p *spec.Plan) []string {
	return []string{c.Model.Name, c.Accelerator.Name, c.Framework, string(p.Precision), string(p.Recompute), string(p.Offload), string(p.Schedule)}
}

// featuresOf returns the features of configurations, a line each: binary logarithms of sizes, and 1 for each value of a
// name. All have mean 0 and variance 1; those that do not vary are left out.
func featuresOf(configs []spec.Config) [][]float64 {
	sizes, names := make([][]int, len(configs)), make([][]string, len(configs))
	for i := range configs {
		p := configs[i].Plan.Normal()
		sizes[i], names[i] = sizesOf(&configs[i], &p), namesOf(&configs[i], &p)
	}
	out := make([][]float64, len(configs))
	add := func(of func(i int) float64) {
		column := make([]float64, len(configs))
		for i := range column {
			column[i] = of(i)
		}
		mean, sd := stat.MeanStdDev(column, nil)
		if !(sd > 0) {
			return
		}
		floats.AddConst(-mean, column)
		for i := range out {
			out[i] = append(out[i], column[i]/sd)
		}
	}
	for k := range sizes[0] {
		add(func(i int) float64 { return math.Log2(float64(max(sizes[i][k], 1))) })
	}
	for k := range names[0] {
		seen := map[string]bool{}
		for i := range names {
			seen[names[i][k]] = true
		}
		for _, v := range slices.Sorted(maps.Keys(seen)) {
			add(func(i int) float64 {
				if names[i][k] == v {
					return 1
				}
				return 0
			})
		}
	}
	return out
}
