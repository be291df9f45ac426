package hybrid

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
)

var numNames = [gp.NumDims]string{"devices", "nodes", "dp", "tp", "pp", "cp", "ep", "vp", "micro-batch", "accumulation",
	"sequence", "hidden width", "layers", "zero", "shard", "experts", "width of experts", "queries per key", "state-space layers"}

var catNames = [gp.CatDims]string{"model", "accelerator", "framework", "precision", "recompute", "offload", "schedule", "release"}

// domain is the range of a set of configurations: of numbers, and of names.
type domain struct {
	Lo  [gp.NumDims]float64
	Hi  [gp.NumDims]float64
	Cat [gp.CatDims][]string

	last atomic.Pointer[warning] // the last one, for plans alike
}

// warning is the warning of a set of dimensions, after others.
type warning struct {
	of     outside
	before []error
	all    []error
}

// same reports whether a and b are the same slice.
func same(a, b []error) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func domainOf(points []gp.Point) *domain {
	d := &domain{}
	for i, p := range points {
		for k, v := range p.Num {
			if i == 0 {
				d.Lo[k], d.Hi[k] = v, v
			}
			d.Lo[k], d.Hi[k] = min(d.Lo[k], v), max(d.Hi[k], v)
		}
		for k, v := range p.Cat {
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

// ofPlan are the dimensions in which plans of one job on the same devices differ; ofAll are all.
const (
	ofPlan outside = gp.PlanNum | gp.PlanCat<<gp.NumDims
	ofAll  outside = 1<<(gp.NumDims+gp.CatDims) - 1
)

// beyond returns the dimensions among some in which p is outside d by more than a factor of two, or has a value that is
// not in d. An empty value counts as inside if d has no values: models fitted before the dimension existed have
// the default.
func (d *domain) beyond(p *gp.Point, among outside) (out outside) {
	for k, v := range p.Num {
		if v < d.Lo[k]-1 || v > d.Hi[k]+1 {
			out |= 1 << k
		}
	}
	for k, v := range p.Cat {
		if bit := outside(1) << (gp.NumDims + k); among&bit != 0 && !slices.Contains(d.Cat[k], v) && (v != "" || len(d.Cat[k]) > 0) {
			out |= bit
		}
	}
	return out & among
}

// anotherModel is the dimension of the model's name.
const anotherModel outside = 1 << gp.NumDims

// widening returns the variance of ln T that the dimensions add. By convention it is the square of 5 % for
// each.
func (o outside) widening() float64 { return 0.05 * 0.05 * float64(bits.OnesCount32(uint32(o))) }

// warn returns the warnings before, and one more that names the dimensions of o, unless it is empty. The caller must not
// change either.
func (d *domain) warn(before []error, o outside) []error {
	if o == 0 {
		return before
	}
	if w := d.last.Load(); w != nil && w.of == o && same(w.before, before) {
		return w.all
	}
	var names []string
	for k := range gp.NumDims {
		if o>>k&1 != 0 {
			names = append(names, numNames[k])
		}
	}
	for k := range gp.CatDims {
		if o>>(gp.NumDims+k)&1 != 0 {
			names = append(names, catNames[k])
		}
	}
	last := fmt.Errorf("hybrid: extrapolated in %s: no measurement is near", strings.Join(names, ", "))
	w := &warning{o, before, append(slices.Clip(before), last)}
	d.last.Store(w)
	return w.all
}
