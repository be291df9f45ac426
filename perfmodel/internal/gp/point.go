package gp

import (
	"math"
	"math/bits"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Point is the position of a configuration in a space with a distance.
type Point struct {
	Num [NumDims]float64 // log2
	Cat [CatDims]string
}

// NumDims and CatDims are the numbers of numeric and categorical dimensions.
const NumDims, CatDims = 15, 7

// PointOf returns the Point of c.
func PointOf(c *spec.Config) Point {
	devices, nodes, _, _ := c.Shape.Stats()
	at := Point{
		Num: [NumDims]float64{0: log2int(devices), 1: log2int(nodes), 10: log2int(c.Seq()), 11: log2int(c.Model.Hidden), 12: log2int(c.Model.Layers)},
		Cat: [CatDims]string{c.Model.Name, c.Accelerator.Name, c.Framework},
	}
	p := c.Plan.Normal()
	at.SetPlan(&p)
	return at
}

// PlanNum and PlanCat are the dimensions that SetPlan sets: bit i for dimension i of Num and of Cat.
const (
	PlanNum = 1<<NumDims - 1 - (1<<0 + 1<<1 + 1<<10 + 1<<11 + 1<<12)
	PlanCat = 1<<CatDims - 1 - (1<<0 + 1<<1 + 1<<2)
)

// SetPlan moves a to the normal plan p of the same job on the same devices.
func (a *Point) SetPlan(p *spec.Plan) {
	n := &a.Num
	n[2], n[3], n[4], n[5], n[6] = log2int(p.DP), log2int(p.TP), log2int(p.PP), log2int(p.CP), log2int(p.EP)
	n[7], n[8], n[9] = log2int(p.VirtualStages), log2int(p.MicroBatch), log2int(p.AccumSteps)
	n[13], n[14] = float64(p.ZeRO), log2int(p.Shard)
	a.Cat[3], a.Cat[4], a.Cat[5], a.Cat[6] = string(p.Precision), string(p.Recompute), string(p.Offload), string(p.Schedule)
}

func log2int(v int) float64 {
	if v&(v-1) == 0 { // a power of two, or 0
		return float64(max(bits.Len(uint(v))-1, 0))
	}
	return math.Log2(float64(max(v, 1)))
}

// numWeights are the distances for a factor of two in each dimension of Num: devices, nodes, dp, tp, pp, cp,
// ep, vp, micro-batch, accumulation, sequence, hidden width, layers, zero, shard.
var numWeights = [NumDims]float64{0.1, 0.1, 0.15, 0.25, 0.2, 0.3, 0.2, 0.15, 0.25, 0.1, 0.3, 0.3, 0.2, 0.3, 0.15}

// catWeights are the distances for different values in each dimension of Cat: model, accelerator, framework,
// precision, recompute, offload, schedule.
var catWeights = [CatDims]float64{0.4, 0.5, 2, 0.5, 0.5, 1, 0.5}

// Distance returns d(a, b) in the kernel of Process.
func (a *Point) Distance(b *Point) float64 {
	d := 0.0
	for i, w := range numWeights {
		d += w * math.Abs(a.Num[i]-b.Num[i])
	}
	for i, w := range catWeights {
		if a.Cat[i] != b.Cat[i] {
			d += w
		}
	}
	return d
}
