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
//	E  = (S⁴ + H⁴)^¼ - H                exposed gradient synchronization
//	     S = Vdi/ηi + u·Vdn/ηn          all of it, H = λ·⅔·C is what backward can overlap
//	U  = o·Ψ·P/(t·p·z)/Bmem             optimizer step on the device, or
//	     a·P/(t·p·z)·12/th + b·P/(t·p)  on the host (ZeRO-Offload)
//	M  = (m + (p-1)/v)/p                micro-batch times per step on a pipeline
//
// Known from a configuration: p, t, z, v are pipeline and tensor degree, ZeRO shards (1 without ZeRO, else DP)
// and virtual stages; m micro-batches; w the time of a micro-batch's FLOPs on one device at peak rate, a third
// more with full recomputation, seconds; V.. the bytes of each kind of traffic over the bandwidth of its link,
// i inside a node and n between nodes, seconds (see configTerms); P parameters; Bmem device memory bandwidth,
// bytes/s; th CPU threads per device.
//
// Fitted, see priors: kf, x, k0, o, ηi, ηn, λ, u, a, b. For a job type without model parallelism, offload or
// uneven placements, x, a, b or u stay at their priors.
//
// If the rows have pipelines with a single micro-batch, the fit also decides whether the stages were actually
// fed sample by sample.
//
// Residuals of ln T are a Gaussian process with a standard deviation of 6 % over the configuration, plus 4 %
// noise of repeated runs. Neighbours are correlated, so several similar rows do not outweigh a single different
// row, and the interval is wider far from every fitted row. Intervals also scale with the scatter of the fitted
// rows.
//
// Not modelled: memory (Prediction.MemoryBytes is 0), the traffic of context and expert parallelism, and
// parameters streamed from the host (offload=params equals offload=optimizer). A warning marks configurations
// with features, precision or sizes unlike those of all fitted rows.
//
// Source: Zhang et al., "Rubick: Exploiting Job Reconfigurability for Deep Learning Cluster Scheduling", MLSys
// 2025 (arXiv 2408.08586), and its artifact AlibabaPAI/reconfigurable-dl-scheduler@80e85248: forward + backward
// + overlapped synchronization + optimizer + offload + constant. Differs: the forward time is fitted and not
// given for each row; one model covers data parallel and 3D plans; the pipeline bubble and recomputation are
// explicit; traffic between nodes follows the placement's smallest node; only step times are used, since the
// traces' sub-timers contradict them.
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

// A paramPrior is the distribution of a parameter before any measurement: log-normal with this median, and sd
// as the standard deviation of its logarithm. No prior was fitted to the rows on which the family is evaluated:
// they are round numbers from datasheets and arithmetic, wide if these are vague. Any median half as large
// again or a third smaller leaves the error on Rubick's traces between 5.3 and 6.1 %. Three terms were designed
// in view of those traces: network cards shared by two devices, the slow-down of uneven placements, and the
// part of the host step that more devices do not share.
type paramPrior struct {
	name, unit string
	median, sd float64
}

var priors = [rbN]paramPrior{
	// kf: time over FLOPs/peak. Training reaches 20 to 60 % of a device's dense
	// peak (Narayanan et al., SC 2021, table 1: 44 to 52 % for the best tuned).
	rbCompute: {"compute_over_peak", "1", 3, 0.7},
	// x: time of model-parallel plans over data-parallel ones for the same FLOPs. They run another code base
	// (Megatron-LM instead of DeepSpeed).
	rbStack: {"model_parallel_stack", "1", 1, 0.3},
	// k0: launches, data loading, logging.
	rbFixed: {"fixed", "s", 0.020, 1},
	// o: device memory traffic of the optimizer. Adam in fp32 reads four and writes three values of 4 bytes; an
	// unfused one makes several passes.
	rbOptim: {"optimizer_traffic", "bytes/parameter", 60, 0.6},
	// ηi, ηn: share of the links' rate that collectives reach.
	rbIntra: {"intra_efficiency", "1", 0.5, 0.4},
	rbInter: {"inter_efficiency", "1", 0.7, 0.4},
	// λ: share of the backward pass that overlaps traffic; small, since these stacks synchronize in large
	// buckets or after the last micro-batch.
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
	amplitude = 0.06 // standard deviation of the residual of ln T
	reach     = 2.0  // distance in configTerms.place at which the correlation of residuals is 1/e
)

// natural returns the parameters with logarithms v.
func (v vec) natural() vec {
	for i := range v {
		v[i] = math.Exp(v[i])
	}
	return v
}

// seconds returns T for parameters e (not logarithms). If grad is not nil, it is set to d ln T / d ln e.
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

// exposedSync returns (s⁴ + h⁴)^¼ - h, the part of s that h does not overlap, and its derivatives by s and h.
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
