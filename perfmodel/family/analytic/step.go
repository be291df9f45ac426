package analytic

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// parts computes a step of a normal plan:
//
//	T = m·t + β·bubble + transfers + exposed DP + optimizer + offload + fixed
//
//	m       micro-batches per replica
//	t       forward and backward of one micro-batch on the busiest stage, seconds
//	bubble  bubble of the schedule, see bubbleSec
//	β       bubbleShare
//
// Source: Narayanan et al. SC 2021, section 2.2 (1F1B and interleaved schedules). Differs: the stage with the
// vocabulary head may be the slowest, and the ramp is shortened by β, as measured.
//
// parts may change p to what the stack does.
func (pr *Prepared) parts(p *spec.Plan) Parts {
	if pr.alone > 0 {
		return pr.aloneParts(p)
	}
	pr.applyStack(p)
	if !pr.work.shape {
		return pr.flopsParts(p)
	}
	own := pr.owned(p)
	f := pr.fixedOf(p, &own)
	return pr.partsAt(p, &f)
}

// fixed is what a step has with samples of any length.
type fixed struct {
	parts         Parts   // the optimizer, and the fixed part
	traffic       traffic // of data parallelism
	accumulateSec float64
}

// fixedOf returns what does not depend on the length of samples, for a plan as the stack changes it.
func (pr *Prepared) fixedOf(p *spec.Plan, own *owned) (f fixed) {
	f.traffic = pr.dataTraffic(p, own)
	pr.updateSec(p, own, &f.parts)
	f.accumulateSec = pr.accumulateSec(p, own)
	f.parts.Fixed = pr.machine.k.fixedSec
	return f
}

// partsAt is parts for a plan with f, on samples of pr's length. It does not change p.
func (pr *Prepared) partsAt(p *spec.Plan, f *fixed) Parts {
	var c pass
	pr.passOf(p, &c)
	l := &c.layer
	micro := float64(p.AccumSteps)
	compute, recompute, launch := pr.layerSec(l, p)
	tp, ep, cp := l.tp*tpOperations(p, l), l.ep, l.cp
	if p.Recompute == spec.RecomputeSelective {
		ep += l.again.ep
	}
	perLayer := compute + recompute + launch + tp + ep + cp
	mean := pr.work.layers / float64(p.PP)
	pace, paceHead := pr.pace(p, perLayer, c.head)

	out := f.parts
	out.Compute = micro * (pace*compute + paceHead)
	out.Recompute = micro * pace * recompute
	out.Launch = micro * pace * launch
	out.TP, out.EP, out.CP = micro*pace*tp, micro*pace*ep, micro*pace*cp

	backward := (l.backward*l.forward+l.attnBack)*pace + paceHead*2/3
	out.Pipeline = pr.pipelineSec(p, mean*perLayer+c.head/float64(p.PP), (l.backward-1)*mean*l.forward+c.head/3/float64(p.PP))
	out.DP = pr.machine.exposedTraffic(&f.traffic, lastBackwards(p)*backward, out.Compute+out.Recompute+out.TP)
	if pr.machine.stack.offloads {
		out.Offload += micro * pace * pr.activationSec(p, l)
	}
	out.Compute += f.accumulateSec
	return out
}

// applyStack changes p to what the stack does regardless of the plan: sequence parallelism with tensor
// parallelism, and shards inside a domain.
func (pr *Prepared) applyStack(p *spec.Plan) {
	p.SequenceParallel = p.TP > 1 && (p.SequenceParallel || pr.machine.stack.sequence)
	if pr.machine.stack.hybrid {
		p.ShardInside(pr.machine.domain)
	}
}

// pass is the work of one micro-batch on a device that does not depend on stages, training states and
// recomputation.
type pass struct {
	layer layer
	head  float64 // vocabulary head, seconds
}

func (pr *Prepared) passOf(p *spec.Plan, out *pass) {
	pr.work.count(&out.layer, &pr.machine, p)
	out.head = pr.work.headSec(&pr.machine, p)
}

// pace returns the number of layers of the slowest stage, and the head's seconds if that stage has the head.
// The stage with the head is the slowest unless others have more layers and take longer. perLayer is in
// seconds.
func (pr *Prepared) pace(p *spec.Plan, perLayer, head float64) (layers, headSec float64) {
	whole, middle := int(pr.work.layers), pr.machine.stack.middle
	last, busiest := float64(p.StageLayers(whole, p.PP-1, middle)), float64(p.StageLayers(whole, max(p.PP-2, 0), middle))
	if last*perLayer+head >= busiest*perLayer {
		return last, head
	}
	return busiest, 0
}

// layerSec splits one layer and micro-batch into compute, recomputation, and the time that the device waits for
// the host. Kernel launches run ahead of the device, so mostly the slower of the two counts: √(device² +
// host²). A host that waits for each kernel does not run ahead, and both add up.
func (pr *Prepared) layerSec(l *layer, p *spec.Plan) (compute, recompute, launch float64) {
	compute, recompute = pr.kernelSec(l, p)
	device, host := compute+recompute, 2*l.launch
	switch p.Recompute {
	case spec.RecomputeFull:
		host += l.launch
	case spec.RecomputeSelective:
		host += l.again.launch
	}
	if pr.machine.stack.blocking {
		return compute, recompute, host
	}
	return compute, recompute, math.Sqrt(device*device+host*host) - device
}

// kernelSec is the device's part of layerSec.
func (pr *Prepared) kernelSec(l *layer, p *spec.Plan) (compute, recompute float64) {
	compute = (1+l.backward)*l.forward + l.adapters + l.attn + l.attnBack + l.passes
	again := l.forward + l.adapters/3 + l.attn + l.passes/3
	switch p.Recompute {
	case spec.RecomputeFull:
		recompute = again
	case spec.RecomputeSelective:
		if pr.machine.stack.halfAgain {
			recompute = again / 2
		} else {
			recompute = l.again.device
			if pr.machine.stack.modules.Core {
				recompute += l.attn + l.attnMem/3
			}
		}
	}
	return compute, recompute
}

// tpOperations returns the number of all-reduces per layer and micro-batch: two forward, two backward, two more
// with full recomputation, and half of one for the extra gather of sequence parallelism. Sources: Shoeybi et
// al. 2019, figure 4; Korthikanti et al. 2022, section 4.2.2. Recomputed modules have those of their forward pass.
func tpOperations(p *spec.Plan, l *layer) float64 {
	n := 4.0
	switch p.Recompute {
	case spec.RecomputeFull:
		n += 2
	case spec.RecomputeSelective:
		n += l.again.tp
	}
	if p.SequenceParallel {
		n += 0.5
	}
	return n
}

// bubbleSec returns the time that a device is idle at the start and end of a step. stage is the time of one
// micro-batch on the average stage, in seconds; weights is the part of it that computes gradients of weights:
//
//	1F1B, GPipe  (p-1)·(F+B+W)/v
//	ZB-H1        (p-1)·(F+B) - min(m-1, p-1)·W
//	ZB-H2        (p-1)·(F+B) - min(m-1, 2(p-1))·W
//	ZB-V         (p-1)·(F+B) - min(2(m-1), 2(p-1))·W
//	DualPipeV    (p-1)·(F+2B-W)/2
//
//	F, B, W  forward, gradients of inputs, gradients of weights: stage = F+B+W
//	m        micro-batches
//
// The result is at least 0. Sources: Narayanan et al. SC 2021, section 2.2; Qi et al., "Zero Bubble Pipeline
// Parallelism", 2024, table 1 for m >= p, or 2p-1; as in section 4 there, no optimizer waits for other stages.
// Differs: with fewer micro-batches, fewer gradients of weights can be delayed. For ZB-V there is no formula if
// F, B and W differ, and no bubble if they do not; the formula of ZB-H2 is used. For DualPipeV README.md of
// deepseek-ai/DualPipe has (p-1)·(F&B + B+W - 3W) of chunks, which are half a stage, with F&B = F+B+W: what overlaps there is
// traffic. F = B is assumed.
func bubbleSec(p *spec.Plan, stage, weights float64) float64 {
	ramp, more := p.PP-1, p.AccumSteps-1
	fill := 0
	switch p.Schedule {
	case spec.ScheduleZBH1:
		fill = min(more, ramp)
	case spec.ScheduleZBH2:
		fill = min(more, 2*ramp)
	case spec.ScheduleZBV:
		fill = 2 * min(more, ramp)
	case spec.ScheduleDualPipeV:
		return float64(ramp) * max(1.5*(stage-weights)-weights, 0) / 2
	default:
		return float64(ramp) / float64(p.VirtualStages) * stage
	}
	return max(float64(ramp)*(stage-weights)-float64(fill)*weights, 0)
}

// pipelineSec returns the bubble and the exposed transfers between stages; see bubbleSec for stage and weights.
// Each micro-batch crosses a boundary twice per chunk, with n·h elements, split by TP if the activations are.
// Stages are placed on consecutive nodes. With more than one node, some boundary lies between two nodes and is
// the slowest: there every rank of the stage, or of the node if that is fewer, sends at once.
func (pr *Prepared) pipelineSec(p *spec.Plan, stage, weights float64) float64 {
	if p.PP == 1 {
		return 0
	}
	v := float64(p.Chunks())
	bubble := pr.machine.k.bubbleShare * bubbleSec(p, stage, weights)
	bytes := elemBytes(p) * float64(p.MicroBatch) * pr.work.seq / float64(p.CP) * pr.work.hidden
	if p.SequenceParallel {
		bytes /= float64(p.TP)
	}
	stageRanks := p.TP * p.CP * p.DP
	senders := 0 // ranks that use the network at the same time
	if stageRanks*p.PP > pr.machine.domain {
		senders = min(stageRanks, pr.machine.domain)
	}
	if senders > 0 && !p.SequenceParallel {
		bytes /= float64(p.TP) // scatter-gather over the ranks' own NICs (Narayanan et al. SC 2021, section 4.1)
	}
	return bubble + pr.machine.sendExposed(p.VirtualStages)*2*v*float64(p.AccumSteps)*pr.machine.sendSec(bytes, senders)
}

// owned are the parameters on a device, and those of them that are trained.
type owned struct{ all, trained memory.Params }

func (pr *Prepared) owned(p *spec.Plan) (o owned) {
	if pr.own != nil {
		return *pr.own
	}
	o.all, o.trained = pr.Memory.Owned(p)
	return o
}

// dataTraffic returns the traffic of gradients, and of parameters under ZeRO, per step.
//
//	ZeRO 0     all-reduce of gradients
//	ZeRO 1, 2  reduce-scatter of gradients (DeepSpeed: all-reduce, as
//	           allreduce_and_scatter of stage_1_and_2.py), all-gather of parameters
//	ZeRO 3     two all-gathers of parameters and one reduce-scatter,
//	           every micro-batch, or once with pipeline stages
//
// If states are sharded in groups, ZeRO's traffic stays inside a group, and once per step each rank's shard of
// the gradients is all-reduced between groups. Sources: Rajbhandari et al. SC 2020, section 7; Zhang et al.,
// "MiCS", VLDB 2022, sections 3.2 and 3.4; Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.2.2.
func (pr *Prepared) dataTraffic(p *spec.Plan, own *owned) traffic {
	m := &pr.machine
	if p.DP*p.CP == 1 && p.EP*p.TP == 1 {
		return traffic{}
	}
	grad := m.stack.gradBytes
	if p.Precision == spec.FP32 || p.Precision == spec.TF32 || m.stack.deepSpeed && p.Precision == spec.BF16 {
		grad = 4 // DeepSpeed accumulates and reduces bf16 gradients in fp32
	}
	r, re, replicas := pr.dataRings(p, grad*own.trained.Dense, grad*own.trained.Expert)
	gather := func(bytes memory.Params) float64 { return m.passSec(r, bytes.Dense) + m.passSec(re, bytes.Expert) }
	reduce := m.passSec(r, grad*own.trained.Dense) + m.passSec(re, grad*own.trained.Expert)
	switch {
	case p.ZeRO == 3:
		t := (2*gather(pr.allBytes(p, own))+reduce)*m.zero3Traffic() + 3*pr.work.layers/float64(p.PP)*m.ringLatency(r)
		if p.PP == 1 { // a pipeline stage stays gathered over its micro-batches
			t *= float64(p.AccumSteps)
		}
		return traffic{t + replicas, m.zero3Hidden(), true}
	case p.ZeRO >= 1:
		if m.stack.deepSpeed {
			reduce *= 2
		}
		t := reduce + gather(pr.trainedBytes(p, own)) + 2*math.Ceil(own.trained.Dense/max(bucket, bucketPerRank*r.n))*m.ringLatency(r)
		return traffic{t + replicas, m.gradHidden(), false}
	}
	return traffic{2 * reduce, m.gradHidden(), false}
}

// allBytes returns the bytes in which the parameters on a device are gathered, or fetched from the host: two each, but those
// of layers' matrices one if they are stored in fp8, or fewer with QLoRA. MXFP8 has scales by direction, so that Megatron
// Core gathers 16 bits (reuse_grad_buf_for_mxfp8_param_ag).
func (pr *Prepared) allBytes(p *spec.Plan, own *owned) memory.Params {
	matrix := 2.0
	switch {
	case pr.work.adapter.Kind == spec.QLoRA:
		matrix = memory.QuantizedBytes
	case pr.machine.stack.fp8 && (p.Precision == spec.FP8 || p.Precision == spec.FP8Rowwise):
		matrix = 1
	}
	of := &own.all
	return memory.Params{Dense: 2*of.Dense - (2-matrix)*of.Linear, Expert: matrix * of.Expert}
}

// trainedBytes returns the bytes in which the parameters that are trained are gathered.
func (pr *Prepared) trainedBytes(p *spec.Plan, own *owned) memory.Params {
	if pr.work.adapter.Kind == spec.FullTraining {
		return pr.allBytes(p, own)
	}
	return memory.Params{Dense: 2 * own.trained.Dense, Expert: 2 * own.trained.Expert}
}

// dataRings returns the rings that gather parameters and reduce gradients, for dense parameters and for
// experts. If these are shard groups, replicas is the time in which the groups all-reduce their shards, in
// seconds. denseGrad and expertGrad are the bytes of gradients.
func (pr *Prepared) dataRings(p *spec.Plan, denseGrad, expertGrad float64) (dense, expert ring, replicas float64) {
	m := &pr.machine
	n, apart := p.DP*p.CP, max(p.EP, p.TP)
	dense = m.ringOf(n, p.TP)
	expert = m.ringOf(int(memory.ExpertReplicas(p)), apart)
	shards := p.Shard
	if shards == 0 {
		return dense, expert, 0
	}
	dense = m.ringOf(shards, p.TP)
	replicas = 2 * m.passSec(m.ringOf(n/shards, p.TP*shards), denseGrad/float64(shards))
	if expertGrad > 0 {
		ways := max(shards*p.TP/apart, 1)
		replicas += 2 * m.passSec(m.ringOf(max(int(expert.n)/ways, 1), apart*ways), expertGrad/float64(ways))
		expert = m.ringOf(ways, apart)
	}
	return dense, expert, replicas
}

// accumulateSec returns the time to accumulate the gradients of micro-batches, at memory rate: those of the
// device's layers, or of its shard if each micro-batch's gradients are reduced (ZeRO 2 and 3). It matters most
// if a micro-batch has few tokens per parameter, as in mixtures of experts. Sources: Megatron-LM's main
// gradients (gradient_accumulation_fusion), PyTorch's AccumulateGrad.
func (pr *Prepared) accumulateSec(p *spec.Plan, own *owned) float64 {
	if p.AccumSteps == 1 {
		return 0
	}
	n := own.trained.Dense + own.trained.Expert
	if p.ZeRO >= 2 {
		n = shardOf(p, own.trained)
	}
	return float64(p.AccumSteps) * pr.machine.k.accumBytes * n / pr.machine.mem
}

// updateSec adds the optimizer over the device's parameters, at memory rate. Muon multiplies each matrix with itself in five
// Newton-Schulz steps: for matrices of width h at most 30·h operations per parameter (Jordan et al. 2024). If offloaded, it runs on the
// CPU, and the host link carries gradients down and weights up, 2 bytes each. The CPU's rate is proportional to
// its threads (Zhang et al., "Rubick", MLSys 2025, section 4.2). Offloaded parameters are fetched for the
// forward and backward pass of every micro-batch. Sources: Ren et al., "ZeRO-Offload", ATC 2021, section 4;
// Rajbhandari et al., "ZeRO-Infinity", SC 2021, section 4.
func (pr *Prepared) updateSec(p *spec.Plan, own *owned, out *Parts) {
	shard := shardOf(p, own.trained)
	if p.Offload == spec.OffloadNone {
		out.Optimizer = pr.machine.k.optimizerBytes * pr.machine.stack.update * shard / pr.memBps
		if pr.machine.stack.muon {
			rate, _ := pr.machine.matmul(spec.BF16)
			out.Optimizer += 30 * pr.work.hidden * shard / rate
		}
		return
	}
	out.Offload = 4*shard/pr.machine.host + shard/(pr.machine.k.cpuAdam*pr.machine.cpus)
	if p.Offload == spec.OffloadParams {
		out.Offload += 2 * shardOf(p, pr.allBytes(p, own)) * float64(p.AccumSteps) / pr.machine.host
	}
}

// shardOf returns the sum of a device's parameters, or with ZeRO that of its shard.
func shardOf(p *spec.Plan, n memory.Params) float64 {
	if p.ZeRO >= 1 {
		return n.Dense/float64(p.Shards()) + n.Expert/memory.ExpertSharding(p)
	}
	return n.Dense + n.Expert
}

// flopsParts is parts for a model known by its FLOPs: compute or bytes moved, whichever is slower, and data
// parallel traffic.
func (pr *Prepared) flopsParts(p *spec.Plan) Parts {
	m := &pr.machine
	var out Parts
	rate, _ := m.matmul(p.Precision)
	elem := elemBytes(p)
	split := float64(p.TP * p.CP * p.PP)
	flops := float64(p.MicroBatch) * pr.work.flops / split
	forward := smoothMax(flops/(rate*pr.machine.k.convCeiling), pr.machine.k.convPasses/3*elem/2*flops/100/m.mem)
	micro := float64(p.AccumSteps)
	out.Compute = micro * 3 * forward
	if p.Recompute != spec.RecomputeNone {
		out.Recompute = micro * forward
	}
	own := pr.owned(p)
	t := pr.dataTraffic(p, &own)
	out.DP = m.exposedTraffic(&t, 2*forward, out.Compute+out.Recompute)
	pr.updateSec(p, &own, &out)
	out.Fixed = pr.machine.k.fixedSec
	return out
}
