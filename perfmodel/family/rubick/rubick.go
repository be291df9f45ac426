package rubick

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
)

// Family is the family "rubick".
var Family = perfmodel.Family{
	Name:   "rubick",
	Doc:    "compute + synchronization + optimizer + offload, fitted to a few step times (after Zhang et al., Rubick, MLSys 2025)",
	Fit:    fit,
	Load:   Load,
	Choose: Choose,
	Gain:   gain,
}

// The step time of one job type (model, accelerator), in seconds:
//
//	T = C + Tp + Pp + E + U + k0
//
//	C  = w·kf·x·M                       forward and backward
//	Tp = (Vti/ηi + Vtn/ηn)·M/m          tensor-parallel all-reduce
//	Pp = Vpi/ηi + Vpn/ηn                activations over stage boundaries
//	E  = (S⁴ + H⁴)^¼ - H                gradient synchronization that is not hidden,
//	     S = Vdi/ηi + u·Vdn/ηn          all of it, H = λ·⅔·C what backward can hide
//	U  = o·Ψ·P/(t·p·z)/Bmem             optimizer step on the device, or
//	     a·P/(t·p·z)·12/th + b·P/(t·p)  on the host (ZeRO-Offload)
//	M  = (m + (p-1)/v)/p                micro-batch times per step on a pipeline
//
// Known of a configuration: p, t, z, v pipeline and tensor degree, ZeRO shards
// (1 without ZeRO, else DP), virtual stages; m micro-batches; w FLOPs of a
// micro-batch on one device, a third more with full recomputation, over peak,
// seconds; V.. bytes of each traffic over the bandwidth of the link they
// take, i inside a node and n between nodes, seconds (see configTerms); P
// parameters; Bmem device memory bandwidth, bytes/s; th CPU threads per
// device. Fitted, see priors: kf, x, k0, o, ηi, ηn, λ, u, a, b; a job
// type without model parallelism, offload or uneven placements leaves x, a, b
// or u at its prior.
//
// Fitted besides, where the rows run a pipeline with a single micro-batch:
// whether the stages were in truth fed sample by sample.
//
// What the formula leaves over is smoothed: residuals of ln T are a Gaussian
// process of 6 % over the configuration, plus 4 % noise of repeated runs. That
// correlates neighbours, so that several rows of one kind do not outvote a
// single row of another, and widens the interval far from every fitted row.
// Intervals widen or narrow, too, with how far the fitted rows scatter.
//
// Not modelled: memory (Prediction.MemoryBytes is 0), the traffic of context and
// expert parallelism, and parameters streamed from the host (offload=params is
// as offload=optimizer). A warning marks configurations no fitted row resembles,
// by the features of their plan, their precision and their size.
//
// Source: Zhang et al., "Rubick: Exploiting Job Reconfigurability for Deep
// Learning Cluster Scheduling", MLSys 2025 (arXiv 2408.08586), and its artifact
// AlibabaPAI/reconfigurable-dl-scheduler@80e85248: forward + backward +
// overlapped synchronization + optimizer + offload + constant. Differs: the
// forward time is fitted, not given by hand per row; one model covers data
// parallel and 3D plans; the pipeline bubble and recomputation are explicit;
// traffic between nodes follows the placement's smallest node; only step times
// are used, since the traces' sub-timers disagree with them.
const (
	rbCompute = iota
	rbStack
	rbFixed
	rbOptim
	rbIntra
	rbInter
	rbHidden
	rbUneven
	rbHostStep
	rbHostCopy
	rbN
)

// vec has one value per parameter.
type vec [rbN]float64

// A paramPrior is the distribution of a parameter before any measurement:
// log-normal with this median, and sd as the standard deviation of its logarithm. None comes from a fit to the rows the family is judged on: they
// are round figures of datasheets and arithmetic, wide where these say little,
// and any median half as large again or a third smaller leaves the error on
// Rubick's traces between 5.3 and 6.1 %. What did come from looking at those
// traces is the form of three terms: network cards shared by two devices, the
// slow-down of uneven placements, and the part of the host step that more
// devices do not share.
type paramPrior struct {
	name, unit string
	median, sd float64
}

var priors = [rbN]paramPrior{
	// kf: time over FLOPs/peak. Training reaches 20 to 60 % of a device's dense
	// peak (Narayanan et al., SC 2021, table 1: 44 to 52 % for the best tuned).
	rbCompute: {"compute_over_peak", "1", 3, 0.7},
	// x: what model-parallel plans take over data-parallel ones for the same
	// FLOPs. They run another code base (Megatron-LM against DeepSpeed).
	rbStack: {"model_parallel_stack", "1", 1, 0.3},
	// k0: launches, data loading, logging.
	rbFixed: {"fixed", "s", 0.020, 1},
	// o: device memory traffic of the optimizer. Adam in fp32 reads four and
	// writes three values of 4 bytes; unfused it passes over them several times.
	rbOptim: {"optimizer_traffic", "bytes/parameter", 60, 0.6},
	// ηi, ηn: share of the links' rate that collectives reach.
	rbIntra: {"intra_efficiency", "1", 0.5, 0.4},
	rbInter: {"inter_efficiency", "1", 0.7, 0.4},
	// λ: share of backward that hides traffic; little, since these stacks
	// synchronize in large buckets or after the last micro-batch.
	rbHidden: {"hidden_share", "1", 0.1, 0.8},
	// u: slow-down between nodes when their device counts differ and one is
	// odd, so that rings pair devices of different network cards.
	rbUneven: {"uneven_slowdown", "1", 1.05, 0.2},
	// a: CPU Adam moves 36 bytes/parameter; an eighth of a node's memory
	// bandwidth (12 threads) is about 25 GB/s.
	rbHostStep: {"host_step", "s/parameter on 12 threads", 1.5e-9, 1},
	// b: 4 bytes of gradient down, 4 of weight up, at 40 GB/s, unshared.
	rbHostCopy: {"host_copy", "s/parameter", 0.2e-9, 0.8},
}

const (
	amplitude = 0.06 // sd of what the formula cannot express, of ln T
	reach     = 2.0  // configuration steps (configTerms.place) after which residuals decorrelate by 1/e
)

// natural returns the parameters whose logarithms are v.
func (v vec) natural() vec {
	for i := range v {
		v[i] = math.Exp(v[i])
	}
	return v
}

// seconds returns T for parameters e (natural, not logarithms), and adds to
// grad, if not nil, d ln T / d ln e.
func (r *configTerms) seconds(e *vec, grad *vec) float64 {
	compute := r.compute * e[rbCompute]
	if r.modelParallel {
		compute *= e[rbStack]
	}
	intra, inter := r.intra/e[rbIntra], r.inter/e[rbInter]
	syncIntra, syncInter := r.syncIntra/e[rbIntra], r.syncInter/e[rbInter]
	if r.uneven {
		syncInter *= e[rbUneven]
	}
	optim := r.optim * e[rbOptim]
	hostStep, hostCopy := r.hostStep*e[rbHostStep], r.hostCopy*e[rbHostCopy]
	sync, hide := syncIntra+syncInter, e[rbHidden]*compute*2/3
	exposed, dSync, dHide := exposedSync(sync, hide)
	t := compute + intra + inter + exposed + optim + hostStep + hostCopy + e[rbFixed]
	if grad == nil {
		return t
	}
	hidden := dHide * hide
	grad[rbCompute] = (compute + hidden) / t
	grad[rbStack] = 0
	if r.modelParallel {
		grad[rbStack] = grad[rbCompute]
	}
	grad[rbFixed] = e[rbFixed] / t
	grad[rbOptim] = optim / t
	grad[rbIntra] = -(intra + dSync*syncIntra) / t
	grad[rbInter] = -(inter + dSync*syncInter) / t
	grad[rbHidden] = hidden / t
	grad[rbUneven] = 0
	if r.uneven {
		grad[rbUneven] = dSync * syncInter / t
	}
	grad[rbHostStep], grad[rbHostCopy] = hostStep/t, hostCopy/t
	return t
}

// exposedSync returns (s⁴ + h⁴)^¼ - h, the part of s that h does not hide, and
// its derivatives by s and h.
func exposedSync(s, h float64) (exposed, ds, dh float64) {
	if s <= 0 {
		return 0, 0, 0
	}
	a, b := s, h
	if b > a {
		a, b = b, a
	}
	q := b / a
	q *= q
	norm := a * math.Sqrt(math.Sqrt(1+q*q)) // no overflow, and exact for h = 0
	x, y := s/norm, h/norm
	return norm - h, x * x * x, y*y*y - 1
}
