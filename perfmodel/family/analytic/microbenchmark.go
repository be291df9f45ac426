package analytic

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Constant is a constant of the model before and after the micro-benchmarks of a machine.
type Constant struct {
	Name     string  `json:"name"`
	Assumed  float64 `json:"assumed"`
	Measured float64 `json:"measured"`
	Ratio    float64 `json:"ratio"`
	Spread   float64 `json:"spread"` // standard deviation of the ratio's logarithm
}

const (
	// microbenchmarkSD is the standard deviation of the logarithm of a part's time that no constant explains: kernels of some
	// shapes are better or worse than the formula.
	microbenchmarkSD = 0.15
	// measuredFreedom widens the standard deviations of constants before the micro-benchmarks, which say more about the
	// devices at hand than what was known of all of them.
	measuredFreedom = 4
	// transferSD is the standard deviation of the logarithm between a constant measured alone and in a training step.
	transferSD = 0.1
)

// measurements are the constants that micro-benchmarks give one type of device.
type measurements struct {
	assumed    constants
	generation int
	at         []int // indices in params, in order
	x, sd      []float64
}

// apply changes k by what was measured.
func (m *measurements) apply(k *constants) {
	for i, at := range m.at {
		for _, v := range params[at].at(k) {
			*v *= math.Exp(m.x[i])
		}
	}
}

// replace changes k, the constants of a stack, by what was measured in place of those of the average stack.
func (m *measurements) replace(k, average *constants) {
	m.apply(k)
	for _, at := range m.at {
		f := m.value(at, &m.assumed) / m.value(at, average)
		for _, v := range params[at].at(k) {
			*v *= f
		}
	}
}

// constants returns those that the measurements determine.
func (m *measurements) constants() (out []Constant) {
	k := m.assumed
	m.apply(&k)
	for i, at := range m.at {
		out = append(out, Constant{params[at].name, m.value(at, &m.assumed), m.value(at, &k), math.Exp(m.x[i]), m.sd[i]})
	}
	return out
}

// value returns the constant of a parameter in k.
func (m *measurements) value(at int, k *constants) float64 {
	figures := params[at].at(k)
	if len(figures) == len(k.shares) {
		return *figures[m.generation]
	}
	return *figures[0]
}

// MeasuredConstants returns the constants that the micro-benchmarks determine. The error names a row without a
// prediction.
func MeasuredConstants(b *spec.Microbenchmarks) ([]Constant, error) {
	m, err := fitMicrobenchmarks(b)
	if err != nil {
		return nil, err
	}
	return m.constants(), nil
}

// measured holds the results of measurementsOf by text.
var measured sync.Map

// measurementsOf returns the measurements of a text of spec.Accelerator.Measured, nil if it is empty or cannot be used.
func measurementsOf(text string) *measurements {
	if text == "" {
		return nil
	}
	if m, ok := measured.Load(text); ok {
		return m.(*measurements)
	}
	var b spec.Microbenchmarks
	var m *measurements
	if json.Unmarshal([]byte(text), &b) == nil && b.Validate() == nil {
		m, _ = fitMicrobenchmarks(&b)
	}
	kept, _ := measured.LoadOrStore(text, m) // one for all, which measuredSD compares
	return kept.(*measurements)
}

// fitMicrobenchmarks fits the constants to the rows of b. Constants that no row depends on are left out. Collectives of
// processes on CPUs do not count: in training they share the cores with its compute, which takes most of their time.
func fitMicrobenchmarks(b *spec.Microbenchmarks) (*measurements, error) {
	m := &measurements{assumed: *Shipped().Physics.any, generation: generationOf(b.Accelerator.Arch)}
	if b.Accelerator.IsCPU() {
		m.assumed = base // see Prior.DistributionOf
		alone := *b
		alone.Rows = slices.DeleteFunc(slices.Clone(b.Rows), func(r spec.Microbenchmark) bool { return r.Ranks > 1 })
		b = &alone
	}
	parts := make([]part, len(b.Rows))
	r := bayes.Regression{Tail: 1}
	for i := range parts {
		var err error
		if parts[i], err = partOf(b, &b.Rows[i]); err != nil {
			return nil, fmt.Errorf("analytic: micro-benchmark %d, %s: %w", i, b.Rows[i].Op, err)
		}
		sec, spread := b.Rows[i].Median()
		r.Y, r.Noise = append(r.Y, math.Log(sec)), append(r.Noise, math.Hypot(spread, microbenchmarkSD))
	}
	m.at = distinct(parts, &m.assumed)
	mean, sd := make([]float64, len(m.at)), make([]float64, len(m.at))
	for i, p := range m.at {
		sd[i] = measuredFreedom * params[p].sd
	}
	r.Prior = bayes.Independent(mean, sd)
	r.Predict = func(x, out []float64) error {
		k := m.assumed
		(&measurements{at: m.at, x: x}).apply(&k)
		for i := range parts {
			out[i] = math.Log(parts[i].seconds(&k))
		}
		return nil
	}
	post, err := r.Fit()
	if err != nil {
		return nil, fmt.Errorf("analytic: micro-benchmarks of %s: %w", b.Accelerator.Name, err)
	}
	m.x = post.Mean
	for i := range m.at {
		m.sd = append(m.sd, math.Sqrt(post.Cov.At(i, i)))
	}
	return m, nil
}

// fp32Param is the name of the parameter of 32-bit multiplications.
const fp32Param = "32-bit gemm"

// distinct returns the parameters that change the time of some part, of those with nearly proportional effects on all parts
// the least certain one.
func distinct(parts []part, k *constants) (out []int) {
	const alike = 0.98 // cosine
	var effects [][]float64
	wide := !slices.ContainsFunc(parts, func(p part) bool { return p.Precision.Bytes() < 4 })
	for i := range params {
		if wide && params[i].name == fp32Param { // without 16 bits it has the effect of their ceiling
			continue
		}
		moved := *k
		for _, v := range params[i].at(&moved) {
			*v *= 2
		}
		effect := make([]float64, len(parts))
		for j := range parts {
			effect[j] = math.Log(parts[j].seconds(&moved) / parts[j].seconds(k))
		}
		norm := floats.Norm(effect, 2)
		if norm == 0 {
			continue
		}
		floats.Scale(1/norm, effect)
		same := slices.IndexFunc(effects, func(e []float64) bool { return math.Abs(floats.Dot(e, effect)) > alike })
		switch {
		case same < 0:
			effects, out = append(effects, effect), append(out, i)
		case params[i].sd > params[out[same]].sd:
			effects[same], out[same] = effect, i
		}
	}
	return out
}

// part is a micro-benchmark with its configuration opened.
type part struct {
	*spec.Microbenchmark
	pr   Prepared
	plan spec.Plan
}

// partOf prepares a row of b. Rows that have no network of their own count as of a small one.
func partOf(b *spec.Microbenchmarks, row *spec.Microbenchmark) (part, error) {
	ranks := max(row.Ranks, 1)
	c := spec.Config{Model: row.Model, Accelerator: b.Accelerator, Link: b.Link, Framework: b.Framework,
		Plan:  spec.Plan{DP: ranks, MicroBatch: max(row.MicroBatch, 1), Precision: row.Precision}.Normal(),
		Shape: spec.Shape{Devices: strconv.Itoa(ranks)}}
	c.Accelerator.Measured = ""
	if c.Model.Layers == 0 {
		c.Model = spec.Model{Kind: spec.Decoder, Layers: 1, Hidden: 64, FFN: 64, Heads: 1, SeqLen: 64}
	}
	p := part{Microbenchmark: row, plan: c.Plan}
	of := stack.Of(c.Framework, c.Accelerator.Arch).Stacks[0]
	if err := p.pr.init(variant{traitsOf(of), &base}, memory.Shipped(), &c); err != nil {
		return p, err
	}
	if sec := p.seconds(&base); !(sec > 0) || math.IsInf(sec, 0) {
		return p, fmt.Errorf("its sizes give %g s, want a positive time", sec)
	}
	return p, nil
}

// seconds returns the predicted time with constants k.
func (p *part) seconds(k *constants) float64 {
	m, w := &p.pr.machine, &p.pr.work
	m.use(k)
	elem := max(p.Precision.Bytes(), 2)
	tokens := float64(p.plan.MicroBatch) * w.seq
	op, _, _ := strings.Cut(p.Op, " ")
	switch op {
	case "gemm":
		rate, _ := m.matmul(p.Precision)
		return m.gemm(rate, float64(p.Rows), float64(p.Cols), float64(p.Depth), elem)
	case "attention":
		var l layer
		w.attention(m, &p.plan, &l, tokens, elem)
		return l.attn + l.attnBack + l.passes
	case "layer":
		l := w.layerOf(m, &p.plan)
		compute, _, launch := p.pr.layerSec(&l, &p.plan)
		return compute + launch
	case "head":
		return w.headSec(m, &p.plan)
	case "optimizer":
		return k.optimizerBytes * p.Parameters / p.pr.memBps
	case "accumulate":
		return k.accumBytes * p.Parameters / m.mem
	case "copy":
		return p.Bytes / m.mem
	case "all-reduce":
		return 2 * m.passSec(m.ringOf(p.Ranks, 1), p.Bytes)
	case "all-gather":
		return m.passSec(m.ringOf(p.Ranks, 1), p.Bytes)
	case "send":
		return m.sendSec(p.Bytes, 0)
	}
	plan := p.plan
	parts := p.pr.parts(&plan) // step
	return parts.Total()
}

// measuredSD returns the standard deviation of the logarithm of each of params that was measured on the devices of every
// site of l, by index. Sites of devices that were measured apart have different values, so it is nil then.
func (l *Layout) measuredSD() map[int]float64 {
	var m *measurements
	for i, s := range l.Sites {
		of := measurementsOf(l.Measured[s.Accelerator])
		if of == nil || i > 0 && of != m {
			return nil
		}
		m = of
	}
	if m == nil {
		return nil
	}
	out := map[int]float64{}
	for i, at := range m.at {
		out[at] = math.Hypot(m.sd[i], transferSD)
	}
	return out
}

// narrowTo scales the uncertainty of params to sd where that is less; correlations stay.
func narrowTo(g *bayes.Gaussian, sd map[int]float64) {
	scale := make([]float64, len(g.Mean))
	for i := range scale {
		scale[i] = 1
		if s, ok := sd[i]; ok {
			scale[i] = min(1, s/math.Sqrt(g.Cov.At(i, i)))
		}
	}
	for i := range scale {
		for j := range i + 1 {
			g.Cov.SetSym(i, j, g.Cov.At(i, j)*scale[i]*scale[j])
		}
	}
}
