package family

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// parts composes a step of a normal plan:
//
//	T = m·t + β·(p-1)/v·t̄ + transfers + exposed DP + optimizer + offload + fixed
//
//	m   micro-batches per replica
//	t   forward and backward of one micro-batch on the busiest stage, seconds
//	t̄   the same averaged over the stages
//	β   bubbleShare
//
// Source: Narayanan et al. SC 2021, section 2.2 (1F1B and interleaved
// schedules). Differs: the stage that carries the vocabulary head sets the
// pace, and the ramp is shortened by β, as measured.
//
// p may be changed: sequence parallelism is what the stack does with TP.
func (pr *prepared) parts(p *spec.Plan) Parts {
	if !pr.work.shape {
		return pr.opaqueParts(p)
	}
	p.SequenceParallel = p.TP > 1 && (p.SequenceParallel || pr.machine.stack.sequence)
	m, w := &pr.machine, &pr.work
	l := w.layerOf(m, p)
	micro := float64(p.AccumSteps)
	busiest, mean := pr.stageLayers(p)

	var out Parts
	head := w.headSec(m, p)
	compute, recompute, launch := pr.layerSec(&l, p)
	tp := l.tp * tpOperations(p)
	ep, cp := l.ep, l.cp
	perLayer := compute + recompute + launch + tp + ep + cp

	// The stage with the head paces the pipeline unless others hold more layers.
	pace, paceHead := busiest, 0.0
	if last := pr.lastLayers(p); last*perLayer+head >= busiest*perLayer {
		pace, paceHead = last, head
	}
	out.Compute = micro * (pace*compute + paceHead)
	out.Recompute = micro * pace * recompute
	out.Launch = micro * pace * launch
	out.TP, out.EP, out.CP = micro*pace*tp, micro*pace*ep, micro*pace*cp

	backward := (2*l.forward+l.attnBack)*pace + paceHead*2/3
	out.Pipeline = pr.pipelineSec(p, mean*perLayer+head/float64(p.PP))
	out.DP = pr.dataParallelSec(p, backward, out.Compute+out.Recompute+out.TP)
	pr.updateSec(p, &out)
	out.Fixed = pr.machine.k.fixedSec
	return out
}

// layerSec splits one layer and micro-batch into compute, recomputation and
// the time the device waits for the host: launches run ahead of the device, so
// that mostly the slower of the two counts, by √(device² + host²).
func (pr *prepared) layerSec(l *layer, p *spec.Plan) (compute, recompute, launch float64) {
	compute = (3*l.forward + l.attn + l.attnBack + l.passes)
	again := l.forward + l.attn + l.passes/3
	switch p.Recompute {
	case spec.RecomputeFull:
		recompute = again
	case spec.RecomputeSelective:
		if pr.machine.stack.halfAgain {
			recompute = again / 2
		} else {
			recompute = (l.attn + l.attnMem/3)
		}
	}
	device, host := compute+recompute, 2*l.launch
	if p.Recompute == spec.RecomputeFull {
		host += l.launch
	}
	return compute, recompute, math.Hypot(device, host) - device + l.sync
}

// tpOperations counts the all-reduces of one layer and micro-batch: two
// forward, two backward, two more when the forward is done again, half a one
// for the extra gather of sequence parallelism. Sources: Shoeybi et al. 2019,
// figure 4; Korthikanti et al. 2022, section 4.2.2.
func tpOperations(p *spec.Plan) float64 {
	n := 4.0
	if p.Recompute == spec.RecomputeFull {
		n += 2
	}
	if p.SequenceParallel {
		n += 0.5
	}
	return n
}

// stageLayers returns the layers of the fullest stage and their mean. Where PP
// does not divide the layers but divides layers+2, embedding and head count as
// a layer each, as in package memory.
func (pr *prepared) stageLayers(p *spec.Plan) (busiest, mean float64) {
	n, pp := int(pr.work.layers), p.PP
	mean = pr.work.layers / float64(pp)
	if n%pp != 0 && (n+2)%pp == 0 {
		return float64((n + 2) / pp), mean
	}
	return math.Ceil(mean), mean
}

// lastLayers returns the layers of the last stage: one less than the fullest
// where embedding and head were counted as layers.
func (pr *prepared) lastLayers(p *spec.Plan) float64 {
	n, pp := int(pr.work.layers), p.PP
	if n%pp != 0 && (n+2)%pp == 0 {
		return float64((n+2)/pp - 1)
	}
	return float64(n / pp)
}

// pipelineSec returns the bubble and the exposed transfers between stages.
// stage is one micro-batch on the average stage, seconds. Each micro-batch
// crosses a boundary twice per chunk, with 2·n·h bytes, split by TP when the
// activations are. The stages follow each other through the nodes, so with more
// than one node some boundary lies between two, and the slowest sets the pace:
// there every rank of the stage, or of the node if that is fewer, sends at once.
func (pr *prepared) pipelineSec(p *spec.Plan, stage float64) float64 {
	if p.PP == 1 {
		return 0
	}
	v := float64(p.VirtualStages)
	bubble := pr.machine.k.bubbleShare * float64(p.PP-1) / v * stage
	bytes := 2 * float64(p.MicroBatch) * pr.work.seq / float64(p.CP) * pr.work.hidden
	if p.SequenceParallel {
		bytes /= float64(p.TP)
	}
	stageRanks := p.TP * p.CP * p.DP
	senders := 0 // on the network at once
	if stageRanks*p.PP > pr.machine.domain {
		senders = min(stageRanks, pr.machine.domain)
	}
	if senders > 0 && !p.SequenceParallel {
		bytes /= float64(p.TP) // scatter-gather over the ranks' own NICs (Narayanan et al. SC 2021, section 4.1)
	}
	return bubble + pr.machine.sendExposed(p.VirtualStages)*2*v*float64(p.AccumSteps)*pr.machine.sendSec(bytes, senders)
}

// dataParallelSec returns the exposed traffic of gradients, and of parameters
// under ZeRO, per step. backward is one micro-batch's backward pass on the
// busiest stage, all the compute of the step, seconds.
//
//	ZeRO 0     all-reduce of gradients
//	ZeRO 1, 2  reduce-scatter of gradients, all-gather of parameters
//	ZeRO 3     two all-gathers of parameters and one reduce-scatter,
//	           every micro-batch, or once with pipeline stages
//
// Source: Rajbhandari et al. SC 2020, section 7.
func (pr *prepared) dataParallelSec(p *spec.Plan, backward, all float64) float64 {
	m := &pr.machine
	if p.DP*p.CP == 1 && p.EP*p.TP == 1 {
		return 0
	}
	dense, expert := pr.mem.Owned(p)
	r := m.ringOf(p.DP*p.CP, p.TP)
	re := m.ringOf(int(memory.ExpertReplicas(p)), max(p.EP, p.TP))
	grad := m.stack.gradBytes
	if p.Precision == spec.FP32 || p.Precision == spec.TF32 || m.stack.deepSpeed && p.Precision == spec.BF16 {
		grad = 4 // DeepSpeed accumulates and reduces bf16 gradients in fp32
	}
	if p.ZeRO == 3 && m.stack.hybrid && r.inner < r.n {
		return pr.hybridShardSec(p, r, dense, grad, all)
	}
	pass := func(bytes float64) float64 { return m.passSec(r, bytes*dense) + m.passSec(re, bytes*expert) }
	switch {
	case p.ZeRO == 3:
		t := (2*pass(2)+pass(grad))*m.zero3Traffic() + 3*pr.work.layers/float64(p.PP)*m.ringLatency(r)
		if p.PP == 1 { // a pipeline stage stays gathered over its micro-batches
			t *= float64(p.AccumSteps)
		}
		return m.exposed(t, m.zero3Hidden()*all)
	case p.ZeRO >= 1:
		t := pass(grad) + pass(2) + 2*math.Ceil(dense/max(bucket, bucketPerRank*r.n))*m.ringLatency(r)
		return m.exposed(t, m.gradHidden()*backward)
	}
	return m.exposed(2*pass(grad), m.gradHidden()*backward)
}

// hybridShardSec is dataParallelSec of ZeRO-3 inside each node and plain data
// parallelism across (HSDP; Zhao et al., "PyTorch FSDP", VLDB 2023, section
// 3.2.2): gathers stay inside, and each rank's shard of the gradients is
// all-reduced across nodes.
func (pr *prepared) hybridShardSec(p *spec.Plan, r ring, dense, grad, all float64) float64 {
	m := &pr.machine
	inside := ring{n: r.inner, inner: r.inner, groups: 1}
	t := float64(p.AccumSteps) * (2*m.passSec(inside, 2*dense) + m.passSec(inside, grad*dense))
	across := ring{n: r.n / r.inner, inner: 1, groups: r.inner * r.groups}
	t += 2 * m.passSec(across, grad*dense/r.inner)
	return m.exposed(t, m.zero3Hidden()*all)
}

// updateSec adds the optimizer: Adam over the parameters this device owns, at
// memory rate, or on the CPU behind the host link when offloaded: gradients
// down, weights up, 2 bytes each; the CPU's rate is that of its threads (Zhang et
// al., "Rubick", MLSys 2025, section 4.2). Offloaded parameters come up for forward and
// backward of every micro-batch. Sources: Ren et al., "ZeRO-Offload", ATC
// 2021, section 4; Rajbhandari et al., "ZeRO-Infinity", SC 2021, section 4.
func (pr *prepared) updateSec(p *spec.Plan, out *Parts) {
	dense, expert := pr.mem.Owned(p)
	shard := dense + expert
	if p.ZeRO >= 1 {
		shard = dense/float64(p.DP*p.CP) + expert/memory.ExpertReplicas(p)
	}
	if p.Offload == spec.OffloadNone {
		out.Optimizer = pr.machine.k.optimizerBytes * shard / pr.memBps
		return
	}
	out.Offload = 4*shard/pr.machine.host + shard/(pr.machine.k.cpuAdam*pr.machine.cpus)
	if p.Offload == spec.OffloadParams {
		out.Offload += 2 * 2 * shard * float64(p.AccumSteps) / pr.machine.host
	}
}

// opaqueParts is the step of a model known by its FLOPs: compute against
// bytes moved, whichever is slower, and data parallel traffic.
func (pr *prepared) opaqueParts(p *spec.Plan) Parts {
	m := &pr.machine
	var out Parts
	rate, _ := m.matmul(p.Precision)
	elem := 2.0
	if p.Precision == spec.FP32 || p.Precision == spec.TF32 {
		elem = 4
	}
	split := float64(p.TP * p.CP * p.PP)
	flops := float64(p.MicroBatch) * pr.work.flops / split
	forward := smoothMax(flops/(rate*pr.machine.k.opaqueCeiling), pr.machine.k.opaquePasses/3*elem/2*flops/100/m.mem)
	micro := float64(p.AccumSteps)
	out.Compute = micro * 3 * forward
	if p.Recompute != spec.RecomputeNone {
		out.Recompute = micro * forward
	}
	out.DP = pr.dataParallelSec(p, 2*forward, out.Compute+out.Recompute)
	pr.updateSec(p, &out)
	out.Fixed = pr.machine.k.fixedSec
	return out
}
