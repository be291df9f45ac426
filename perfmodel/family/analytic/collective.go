package analytic

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ring is a group of n ranks that runs a collective. inner of them share a domain (devices joined by a scale-up
// link); the others are reached over the network, which all groups of a domain share.
type ring struct {
	n      float64 // ranks
	inner  float64 // ranks in one domain
	groups float64 // groups of this kind in one domain, all active at the same time
}

// ringOf returns the group of n ranks that are stride apart in Megatron-LM's rank order (tensor, context,
// expert, data, pipeline), on a machine with m.domain devices per domain.
func (m *machine) ringOf(n, stride int) ring {
	inner := max(min(m.domain/max(stride, 1), n), 1)
	return ring{n: float64(n), inner: float64(inner), groups: float64(max(m.domain/inner, 1))}
}

// inside returns the bandwidth of a device to the other devices of a group of g in one domain.
func (m *machine) inside(g float64) float64 {
	switch {
	case m.mesh < 2 || g < 2 || int(g) >= m.mesh:
		return m.intra
	case m.cube && m.mesh == 8 && g <= 2:
		return m.intra / 6
	case m.cube && m.mesh == 8 && g <= 4:
		return m.intra * 4 / 6
	}
	return m.intra * (g - 1) / float64(m.mesh-1)
}

// passSec returns the time of one pass of bytes around the ring, that is a reduce-scatter or an all-gather; an
// all-reduce is two passes:
//
//	T = (n-1)/n · max(S/B + τ, S·k/W) + α·log2(g) + β·log2(q)
//
//	S     bytes at each rank after an all-gather, or before a reduce-scatter
//	n     ranks: g inside each of q domains
//	B     ring bandwidth per device inside a domain, bytes/s; see inside
//	τ     time until the links are busy, seconds: half of B is reached at B·τ bytes
//	W     bandwidth out of one domain, shared by its k groups, bytes/s
//	α, β  hop latency inside a domain and between domains, seconds
//
// Every link of the ring carries (n-1)/n · S, and the slowest one sets the rate. Sources: Thakur, Rabenseifner and
// Gropp, "Optimization of Collective Communication Operations in MPICH", 2005 (alpha-beta costs); NVIDIA nccl-tests
// PERFORMANCE.md (bus bandwidth).
func (m *machine) passSec(r ring, bytes float64) float64 {
	if r.n <= 1 || bytes <= 0 {
		return 0
	}
	t := 0.0
	if r.inner > 1 {
		t = bytes/m.inside(r.inner) + m.share.start
	}
	latency := m.share.hop * log2(r.inner)
	if q := r.n / r.inner; q > 1 {
		t = max(t, bytes*r.groups/m.inter)
		latency += m.k.netHopSec * log2(q)
	}
	return (r.n-1)/r.n*t + latency
}

// ringLatency returns the latency of a reduce-scatter or an all-gather: n-1 steps around the ring, timed by the
// slower steps over the network. NCCL has no tree algorithm for these two.
func (m *machine) ringLatency(r ring) float64 {
	if r.n <= r.inner {
		return m.share.hop * log2(r.inner)
	}
	return m.k.netHopSec * (r.n - 1)
}

// allToAllSec returns the time in which every rank sends bytes, spread evenly over all ranks. Ranks in other domains
// get remote bytes over the network.
func (m *machine) allToAllSec(r ring, bytes, remote float64) float64 {
	if r.n <= 1 {
		return 0
	}
	t := (r.inner - 1) / r.n * bytes / m.inside(r.inner)
	if remote > 0 {
		t = max(t, remote*r.groups*r.inner/m.inter)
	}
	return t + m.share.hop*log2(r.n)
}

// copies returns the expected number of copies of a token for k experts that are spread evenly over n places: k, or
// n·(1 - (1 - 1/n)^k) if a place gets one copy for all its experts.
func (m *machine) copies(n, k float64) float64 {
	if m.stack.perNode {
		return n * (1 - math.Pow(1-1/n, k))
	}
	return k
}

// remoteCopies returns the expected number of copies of a token that leave its domain. Its experts are on at most that many
// domains, all sets of them equally likely, and in a set spread evenly. So that many places take the part of all.
func (m *machine) remoteCopies(r ring, domains, k float64) float64 {
	q := r.n / r.inner
	if q <= 1 {
		return 0
	}
	return m.copies(min(q, domains), k) * (1 - 1/q)
}

// sendSec returns the time of sending bytes to the next pipeline stage: over the network, shared by that many
// senders of the domain, or inside the domain if senders is 0.
func (m *machine) sendSec(bytes float64, senders int) float64 {
	if senders > 0 {
		return bytes*float64(senders)/m.inter + m.share.hop
	}
	return bytes/m.inside(2) + m.share.hop
}

// traffic is that of a step, and how much of it compute hides.
type traffic struct {
	sec    float64
	hidden float64 // share of compute that it can overlap
	all    bool    // of the whole step, else of the last backward passes, see lastBackwards
}

// exposedTraffic returns the part of t on the critical path, in seconds. backward is the compute of the busiest stage after the
// first complete gradients, all that of the whole step, both in seconds.
func (m *machine) exposedTraffic(t *traffic, backward, all float64) float64 {
	if t.all {
		backward = all
	}
	return m.exposed(t.sec, t.hidden*backward)
}

// lastBackwards returns the backward passes of micro-batches through a stage that follow the first complete gradients. It is one
// without interleaving. Interleaved stages take as many micro-batches as there are stages through one chunk of layers, then
// through the one before it (Narayanan et al. 2021, section 2.2): gradients of a chunk are complete while those micro-batches
// have all other chunks ahead.
func lastBackwards(p *spec.Plan) float64 {
	v := float64(max(p.VirtualStages, 1))
	return (1 + (v-1)*float64(min(p.PP, p.AccumSteps))) / v
}

// exposed returns the part of traffic on the critical path if it overlaps hidden seconds of compute, by a
// smooth maximum; both are in seconds:
//
//	(T⁴ + H⁴)^(1/4) − H, plus hiddenCost times the overlapped part
//
// Kernels slow down while traffic overlaps them (Isaev et al., "Calculon", SC 2023).
func (m *machine) exposed(traffic, hidden float64) float64 {
	if hidden <= 0 || traffic <= 0 {
		return traffic
	}
	out := smoothMax(traffic, hidden) - hidden
	return out + m.k.hiddenCost*(traffic-out)
}
