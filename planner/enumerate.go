package planner

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Enumerate is the Space of legal plans. A plan is in it when
//
//   - DP·TP·PP·CP is the number of devices and DP x micro-batch x accumulation
//     the global batch;
//   - it passes spec.Plan.Check and the rules of legal.go;
//   - its modes are among those declared below;
//   - the chunks of interleaved stages are even, or become even if embedding and
//     head count as a layer each.
//
// The space has every such plan, except that it considers one shard group, see
// shardGroup. The zero value is the default space.
type Enumerate struct {
	// TPAcrossNodes lets tensor parallel groups span nodes that no scale-up link
	// joins. By default they do not: their traffic is on the critical path of
	// every layer.
	TPAcrossNodes bool
	// LongSeq is the tokens per sample from which context parallelism is
	// considered, 0 = 16384. Below, it only adds traffic.
	LongSeq int
	// MaxMicroBatch bounds the micro-batch, 0 = no bound.
	MaxMicroBatch int
	// ZeRO, Recompute and Offload list the modes considered; nil = all.
	ZeRO      []int
	Recompute []spec.Recompute
	Offload   []spec.Offload
	// Schedules lists the pipeline schedules considered; 1F1B includes
	// interleaving. nil = 1F1B, which every stack with pipelines has.
	Schedules []spec.Schedule
	// Precisions lists the formats considered where the Request names none, without
	// those the accelerator is known to lack. nil = the first of bf16, fp16 and
	// fp32 that the accelerator has.
	Precisions []spec.Precision
}

var (
	allZeRO      = []int{0, 1, 2, 3}
	allRecompute = []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull}
	allOffload   = []spec.Offload{spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams}

	only1F1B = []spec.Schedule{spec.ScheduleDefault}
)

// Configs yields the legal configurations of r, in a fixed order.
func (e Enumerate) Configs(_ context.Context, r Request) iter.Seq[spec.Config] {
	return func(yield func(spec.Config) bool) {
		g := e.generator(r)
		if r.Plan != nil {
			if r.Plan.Devices() == r.Devices && CannotSplit(&r.Model, g.c.Seq(), r.Plan) == "" && r.Plan.Check(r.Model) == nil {
				g.c.Plan = *r.Plan
				yield(g.c)
			}
			return
		}
		g.each(func(p *spec.Plan) bool {
			g.c.Plan = *p
			return yield(g.c)
		})
	}
}

// plans implements uniform.
func (e Enumerate) plans(r Request) (shared spec.Config, each planWalk, ok bool) {
	if r.Plan != nil {
		return shared, nil, false
	}
	g := e.generator(r)
	return g.c, func(prunable, yield func(*spec.Plan) bool) {
		g.prunable = prunable
		g.each(yield)
	}, true
}

// generator yields the plans of one request. It chooses degrees first and modes
// last, so that each rule prunes as early as possible.
type generator struct {
	e    Enumerate
	r    Request
	c    spec.Config // Plan is filled in per candidate
	seq  int         // tokens of a sample
	node int         // devices that TP groups must divide: gcd over nodes, or all
	even int         // gcd of the devices of the nodes

	prunable func(*spec.Plan) bool // see planWalk; may be nil
}

func (e Enumerate) generator(r Request) *generator {
	if e.LongSeq == 0 {
		e.LongSeq = 16384
	}
	if e.ZeRO == nil {
		e.ZeRO = allZeRO
	}
	if e.Recompute == nil {
		e.Recompute = allRecompute
	}
	if e.Offload == nil {
		e.Offload = allOffload
	}
	e.Offload = r.offload.among(e.Offload)
	if r.Accelerator.IsCPU() { // its memory is the host's
		e.Offload = noOffload.among(e.Offload)
	}
	shape, even := r.Shape, 0
	if shape.Devices == "" {
		shape.Devices = spec.Packed(r.Devices, r.PerNode).Devices
		perNode := max(r.PerNode, 1)
		even = gcd(min(r.Devices, perNode), r.Devices%perNode)
	}
	for _, n := range r.Shape.PerNode() {
		even = gcd(even, n)
	}
	e.Schedules = schedulesOf(e.Schedules)
	g := &generator{e: e, r: r, node: r.Devices, even: even}
	g.c = spec.Config{Model: r.Model, SeqLen: r.SeqLen, Accelerator: r.Accelerator, Shape: shape, Link: r.Link, Framework: r.Framework}
	g.seq = g.c.Seq()
	if !e.TPAcrossNodes {
		g.node = joined(r.Devices, g.even, r.Accelerator.ScaleUpDomain())
	}
	return g
}

// joined returns the devices of the largest groups of whole nodes that divide a job's devices and that one scale-up link
// of domain devices joins; a node if the link ends there.
func joined(devices, node, domain int) int {
	for n := domain - domain%node; n > node; n -= node {
		if devices%n == 0 {
			return n
		}
	}
	return node
}

// schedulesOf returns the schedules of an Enumerate, each once and under the
// name of spec.Plan.Normal.
func schedulesOf(listed []spec.Schedule) []spec.Schedule {
	if listed == nil {
		return only1F1B
	}
	var out []spec.Schedule
	for _, s := range listed {
		if s == spec.Schedule1F1B {
			s = spec.ScheduleDefault
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// among returns the modes to search.
func (o offloading) among(modes []spec.Offload) []spec.Offload {
	if o == anyOffload {
		return modes
	}
	var out []spec.Offload
	for _, m := range modes {
		if (m == spec.OffloadNone) == (o == noOffload) {
			out = append(out, m)
		}
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// divisors returns the divisors of n in ascending order.
func divisors(n int) []int {
	out, root := make([]int, 0, 16), 1
	for ; root*root <= n; root++ {
		if n%root == 0 {
			out = append(out, root)
		}
	}
	for i := len(out) - 1; i >= 0; i-- {
		if d := out[i]; d*d < n {
			out = append(out, n/d)
		}
	}
	return out
}

// each calls yield with every legal plan until it returns false. The plan is
// reused between calls.
func (g *generator) each(yield func(*spec.Plan) bool) {
	for _, precision := range g.precisions() {
		if !g.degrees(precision, yield) {
			return
		}
	}
}

// degrees chooses TP, PP, CP and DP.
func (g *generator) degrees(precision spec.Precision, yield func(*spec.Plan) bool) bool {
	p := spec.Plan{Precision: precision}.Normal()
	for _, p.TP = range divisors(g.node) {
		if g.r.Devices%p.TP != 0 || g.r.Model.Heads%p.TP != 0 {
			continue
		}
		for _, p.PP = range divisors(g.r.Devices / p.TP) {
			if g.r.Model.HasShape() && p.PP > g.r.Model.Layers {
				break
			}
			for _, p.CP = range divisors(g.r.Devices / p.TP / p.PP) {
				p.DP = g.r.Devices / p.TP / p.PP / p.CP
				p.EP, p.VirtualStages, p.MicroBatch, p.AccumSteps, p.SequenceParallel = 1, 1, 1, 1, false
				p.ZeRO, p.Shard, p.Offload, p.Recompute, p.Schedule = 0, 0, spec.OffloadNone, spec.RecomputeNone, spec.ScheduleDefault
				if g.r.GlobalBatch%p.DP != 0 || g.legalDegrees(&p) != noViolation || p.Check(g.r.Model) != nil {
					continue
				}
				if !g.batches(&p, yield) {
					return false
				}
			}
		}
	}
	return true
}

// batches chooses micro-batch, schedule and virtual stages for given degrees.
func (g *generator) batches(p *spec.Plan, yield func(*spec.Plan) bool) bool {
	perReplica := g.r.GlobalBatch / p.DP
	schedules := g.schedules(p)
	for _, mb := range divisors(perReplica) {
		if g.e.MaxMicroBatch > 0 && mb > g.e.MaxMicroBatch {
			break
		}
		p.MicroBatch, p.AccumSteps = mb, perReplica/mb
		for _, p.Schedule = range schedules {
			if p.Schedule == spec.ScheduleDualPipeV && p.AccumSteps < 2*p.PP {
				continue
			}
			for _, p.VirtualStages = range g.virtualStages(p) {
				if !g.experts(p, yield) {
					return false
				}
			}
		}
	}
	return true
}

// schedules returns the pipeline schedules that are legal with p's degrees.
func (g *generator) schedules(p *spec.Plan) []spec.Schedule {
	if p.PP == 1 {
		return only1F1B
	}
	var out []spec.Schedule
	for _, s := range g.e.Schedules {
		q := *p
		q.Schedule, q.AccumSteps = s, 2*p.PP // see batches
		if q.Check(g.r.Model) == nil {
			out = append(out, s)
		}
	}
	return out
}

// virtualStages returns the interleaving degrees: 1, and with 1F1B and accumulation
// a multiple of PP also the divisors of a stage's layers. Where PP does not divide
// the layers, embedding and head count as a layer each. Where PP does not divide
// that number either, chunks would be uneven and only 1 is left.
func (g *generator) virtualStages(p *spec.Plan) []int {
	if p.PP == 1 || p.Schedule != spec.ScheduleDefault || p.AccumSteps%p.PP != 0 || !g.r.Model.HasShape() {
		return oneStage
	}
	for _, layers := range [2]int{g.r.Model.Layers, g.r.Model.Layers + 2} {
		if layers%p.PP == 0 {
			return divisors(layers / p.PP)
		}
	}
	return oneStage
}

var oneStage = []int{1}

// experts chooses EP: divisors of the experts that divide DP·CP·TP.
func (g *generator) experts(p *spec.Plan, yield func(*spec.Plan) bool) bool {
	p.EP = 1
	if g.r.Model.Experts == 0 {
		return g.promising(p, yield)
	}
	for _, ep := range divisors(g.r.Model.Experts) {
		if (p.DP*p.CP*p.TP)%ep != 0 {
			continue
		}
		p.EP = ep
		if !g.promising(p, yield) {
			return false
		}
	}
	return true
}

// promising skips degrees and micro-batches that are prunable in all modes.
func (g *generator) promising(p *spec.Plan, yield func(*spec.Plan) bool) bool {
	return g.prunable != nil && g.prunable(p) || g.modes(p, yield)
}

// modes chooses sequence parallelism, ZeRO stage and shard group, offload and
// recompute.
func (g *generator) modes(p *spec.Plan, yield func(*spec.Plan) bool) bool {
	group := g.shardGroup(p)
	for _, p.SequenceParallel = range []bool{false, true} {
		for _, p.ZeRO = range g.e.ZeRO {
			for _, p.Offload = range g.e.Offload {
				if g.legalModes(p) != noViolation {
					continue
				}
				p.Shard = 0
				if !g.recomputes(p, yield) {
					return false
				}
				if p.ZeRO == 0 || group == 0 {
					continue
				}
				p.Shard = group
				if !g.recomputes(p, yield) {
					return false
				}
			}
		}
	}
	return true
}

// shardGroup returns the group size considered for sharding p's ZeRO states besides
// all ranks, 0 = none: where the data parallel ranks of a stage span nodes, the
// ranks of one node. Smaller groups need more memory and gather no faster; larger
// ones cross the network as all ranks do.
func (g *generator) shardGroup(p *spec.Plan) int {
	n := p.DP * p.CP
	if g.even == 0 || g.even%p.TP != 0 || n*p.TP <= g.even {
		return 0
	}
	if group := gcd(n, g.even/p.TP); group > 1 && group < n {
		return group
	}
	return 0
}

// recomputes chooses recompute. Zero-bubble schedules exclude full recompute.
func (g *generator) recomputes(p *spec.Plan, yield func(*spec.Plan) bool) bool {
	for _, p.Recompute = range g.e.Recompute {
		if p.Recompute == spec.RecomputeSelective && !g.r.Model.HasShape() {
			continue // without attention there is none
		}
		if p.Recompute == spec.RecomputeFull && p.Schedule.ZeroBubble() {
			continue
		}
		if !yield(p) {
			return false
		}
	}
	return true
}

func (g *generator) precisions() []spec.Precision {
	if g.r.Precision != "" || g.e.Precisions == nil {
		return []spec.Precision{cmp.Or(g.r.Precision, g.r.Accelerator.DefaultPrecision())}
	}
	has := g.r.Accelerator.Formats()
	return slices.DeleteFunc(slices.Clone(g.e.Precisions), func(p spec.Precision) bool {
		return len(has) > 0 && !slices.Contains(has, p.Format())
	})
}
