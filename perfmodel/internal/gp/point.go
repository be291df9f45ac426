package gp

import (
	"math"
	"math/bits"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Point is the position of a configuration in the space of a Kernel.
type Point struct {
	Num [NumDims]float64 // log2
	Cat [CatDims]string
}

// NumDims and CatDims are the numbers of numeric and categorical dimensions.
const NumDims, CatDims = 19, 8

// dims is the number of all dimensions.
const dims = NumDims + CatDims

// Dimensions of Num that PointOf sets.
const (
	devices, nodes        = 0, 1
	seq, hidden, layers   = 10, 11, 12
	experts, expertFFN    = 15, 16
	queriesPerKey, spaces = 17, 18
)

// Dimensions of Cat.
const modelCat, deviceCat, stackCat, releaseCat = 0, 1, 2, 7

// PointOf returns the Point of c. One rank alone is where a plan for one device with the layers of its stage would be.
func PointOf(c *spec.Config) Point {
	total, machines, _, _ := c.Shape.Stats()
	m := &c.Model
	p, held := c.Plan.Normal(), m.Layers
	if c.Alone() {
		total, machines, held = 1, 1, p.StageLayers(held, c.AloneStage-1, false)
		p = c.RankPlan(&p)
	}
	at := Point{
		Num: [NumDims]float64{devices: log2int(total), nodes: log2int(machines), seq: log2int(c.Seq()), hidden: log2int(m.Hidden), layers: log2int(held),
			experts: log2int(m.Experts + 1), expertFFN: log2int(m.ExpertFFN), spaces: log2int(m.SSMLayers + 1)},
		Cat: [CatDims]string{modelCat: m.Name, deviceCat: c.Accelerator.Name, stackCat: stackName(c.Framework), releaseCat: c.Framework},
	}
	if kv := m.KV(); kv > 0 {
		at.Num[queriesPerKey] = log2int(m.Heads / kv)
	}
	at.SetPlan(&p)
	return at
}

// stackName returns the name of a training stack without its release and changed parts.
func stackName(text string) string {
	end := strings.IndexAny(text, "@+")
	if end < 0 {
		end = len(text)
	}
	return strings.TrimSpace(text[:end])
}

// PlanNum and PlanCat are the dimensions that SetPlan sets: bit i for dimension i of Num and of Cat.
const (
	PlanNum = 1<<NumDims - 1 - (1<<devices + 1<<nodes + 1<<seq + 1<<hidden + 1<<layers + 1<<experts + 1<<expertFFN + 1<<queriesPerKey + 1<<spaces)
	PlanCat = 1<<CatDims - 1 - (1<<modelCat + 1<<deviceCat + 1<<stackCat + 1<<releaseCat)
)

// SetPlan moves a to the normal plan p of the same job on the same devices, for one rank alone that of RankPlan.
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

// routed reports whether a's model has experts.
func (a *Point) routed() bool { return a.Num[experts] > 0 }

// Weights are the distances in each dimension: for a factor of two in each of Num, and for different values in each of
// Cat.
type Weights [dims]float64

// between writes the differences of a and b in each dimension to out.
func (a *Point) between(b *Point, out []float64) {
	for i := range a.Num {
		out[i] = math.Abs(a.Num[i] - b.Num[i])
	}
	for i := range a.Cat {
		out[NumDims+i] = 0
		if a.Cat[i] != b.Cat[i] {
			out[NumDims+i] = 1
		}
	}
}

// distance returns the distance of a and b.
func (w *Weights) distance(a, b *Point) float64 {
	d := 0.0
	for i := range a.Num {
		d += w[i] * math.Abs(a.Num[i]-b.Num[i])
	}
	for i := range a.Cat {
		if a.Cat[i] != b.Cat[i] {
			d += w[NumDims+i]
		}
	}
	return d
}

// sameSite reports whether a and b are of one stack and device.
func (a *Point) sameSite(b *Point) bool {
	return a.Cat[deviceCat] == b.Cat[deviceCat] && a.Cat[stackCat] == b.Cat[stackCat]
}

// Distance returns the usual distance of a and b.
func (a *Point) Distance(b *Point) float64 { return usual.Weights.distance(a, b) }
