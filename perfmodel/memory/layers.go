package memory

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// span counts the layers of a stage by kind.
type span struct {
	dense float64 // with a dense MLP
	moe   float64 // with routed experts
}

func (s span) all() float64 { return s.dense + s.moe }

// kinds returns the counts by kind: layers without experts, layers with experts.
func (s span) kinds() [2]float64 { return [2]float64{s.dense, s.moe} }

// stageLayers returns the number of layers of a stage.
func (e *Estimator) stageLayers(p *spec.Plan, stage int) int {
	return p.StageLayers(e.nn, stage, e.stack.middle)
}

// layersOn returns the layers of a stage. Leading layers with a dense MLP come first in the model; without any, layers
// with and without experts alternate, and each stage has its share of both. With more than one chunk per stage, chunk c
// of stage i is the (c·PP + i)th of the model; the second one of a V-shaped schedule is the (2·PP - 1 - i)th.
func (e *Estimator) layersOn(p *spec.Plan, stage int) span {
	if !e.shape {
		return span{dense: e.layers / float64(p.PP)}
	}
	n := e.stageLayers(p, stage)
	if e.leading == 0 {
		moe := float64(n) * (e.w.layers.moe + e.ahead.moe) / float64(e.nn)
		return span{dense: float64(n) - moe, moe: moe}
	}
	dense := 0.0
	if v := p.Chunks(); v == 1 {
		before := 0
		for i := 0; i < stage && before < e.leading; i++ {
			before += e.stageLayers(p, i)
		}
		dense = float64(min(max(e.leading-before, 0), n))
	} else {
		per := float64(n) / float64(v)
		for c := range v {
			at := c*p.PP + stage
			if c == 1 && p.Schedule.VShaped() {
				at = 2*p.PP - 1 - stage
			}
			dense += min(max(float64(e.leading)-float64(at)*per, 0), per)
		}
	}
	return span{dense: dense, moe: float64(n) - dense}
}

// firstWithoutDense returns the first stage that has only layers with experts.
func (e *Estimator) firstWithoutDense(p *spec.Plan) int {
	if p.Chunks() > 1 {
		return min(int(math.Ceil(float64(e.leading)*float64(p.PP*p.Chunks())/float64(e.nn))), p.PP-1)
	}
	before := 0
	for i := range p.PP {
		if before >= e.leading {
			return i
		}
		before += e.stageLayers(p, i)
	}
	return p.PP - 1
}
