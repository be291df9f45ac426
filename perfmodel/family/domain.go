package family

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// point is a configuration by what a performance model may not have seen.
type point struct {
	num [numDims]float64 // log2
	cat [catDims]string
}

const numDims, catDims = 15, 7

var numNames = [numDims]string{"devices", "nodes", "dp", "tp", "pp", "cp", "ep", "vp", "micro-batch", "accumulation",
	"sequence", "hidden width", "layers", "zero", "shard"}

var catNames = [catDims]string{"model", "accelerator", "framework", "precision", "recompute", "offload", "schedule"}

func pointOf(c *spec.Config) point {
	p := c.Plan.Normal()
	devices, nodes, _, _ := c.Shape.Stats()
	return point{
		num: [numDims]float64{log2int(devices), log2int(nodes), log2int(p.DP), log2int(p.TP), log2int(p.PP), log2int(p.CP),
			log2int(p.EP), log2int(p.VirtualStages), log2int(p.MicroBatch), log2int(p.AccumSteps), log2int(c.Seq()),
			log2int(c.Model.Hidden), log2int(c.Model.Layers), float64(p.ZeRO), log2int(p.Shard)},
		cat: [catDims]string{c.Model.Name, c.Accelerator.Name, c.Framework, string(p.Precision), string(p.Recompute), string(p.Offload), string(p.Schedule)},
	}
}

func log2int(v int) float64 { return log2(float64(max(v, 1))) }

// domain is what a set of configurations spans.
type domain struct {
	Lo  [numDims]float64
	Hi  [numDims]float64
	Cat [catDims][]string

	warnings sync.Map // outside -> []error
}

func domainOf(points []point) *domain {
	d := &domain{}
	for i, p := range points {
		for k, v := range p.num {
			if i == 0 {
				d.Lo[k], d.Hi[k] = v, v
			}
			d.Lo[k], d.Hi[k] = min(d.Lo[k], v), max(d.Hi[k], v)
		}
		for k, v := range p.cat {
			if !slices.Contains(d.Cat[k], v) {
				d.Cat[k] = append(d.Cat[k], v)
			}
		}
	}
	for k := range d.Cat {
		slices.Sort(d.Cat[k])
	}
	return d
}

// outside is a set of dimensions: bit k for numNames[k], numDims+k for catNames[k].
type outside uint32

// beyond returns the dimensions in which p is outside d by more than a factor
// of two, or is of a kind d has not. A kind that nothing is recorded of, as in
// what was fitted before there were others, is the default one.
func (d *domain) beyond(p *point) (out outside) {
	for k, v := range p.num {
		if v < d.Lo[k]-1 || v > d.Hi[k]+1 {
			out |= 1 << k
		}
	}
	for k, v := range p.cat {
		if !slices.Contains(d.Cat[k], v) && (v != "" || len(d.Cat[k]) > 0) {
			out |= 1 << (numDims + k)
		}
	}
	return out
}

// anotherModel is the dimension of the model's name.
const anotherModel outside = 1 << numDims

// widening is what every dimension outside adds to the variance of ln T: a
// stated convention, the square of 5 %.
func (o outside) widening() float64 { return 0.05 * 0.05 * float64(bits.OnesCount32(uint32(o))) }

// warn returns the warning that names the dimensions of o, nil for none.
func (d *domain) warn(by string, o outside) []error {
	if o == 0 {
		return nil
	}
	if w, ok := d.warnings.Load(o); ok {
		return w.([]error)
	}
	var names []string
	for k := range numDims {
		if o>>k&1 != 0 {
			names = append(names, numNames[k])
		}
	}
	for k := range catDims {
		if o>>(numDims+k)&1 != 0 {
			names = append(names, catNames[k])
		}
	}
	w := []error{fmt.Errorf("%s: extrapolated in %s: nothing measured is near", by, strings.Join(names, ", "))}
	d.warnings.Store(o, w)
	return w
}
