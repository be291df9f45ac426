package analytic

// ring is a group of n ranks that runs collectives: inner of them share a
// domain, the rest is reached over the network, which the groups of one domain
// share.
type ring struct {
	n      float64 // ranks
	inner  float64 // of them in one domain
	groups float64 // groups of this kind in one domain, all active at once
}

// ringOf returns the group of n ranks that are stride apart in the rank order
// tensor, context, expert, data, pipeline (Megatron-LM's), on a machine whose
// domains have m.domain devices.
func (m *machine) ringOf(n, stride int) ring {
	inner := max(min(m.domain/max(stride, 1), n), 1)
	return ring{n: float64(n), inner: float64(inner), groups: float64(max(m.domain/inner, 1))}
}

// passSec returns the time of one pass of bytes around the ring, a
// reduce-scatter or an all-gather; an all-reduce is two:
//
//	T = max((g-1)/g · S/B(S), (q-1)/q · S·k/W) + α·log2(g) + β·log2(q)
//
//	S     bytes each rank ends up with (all-gather) or starts from, bytes
//	g, q  ranks inside a domain, domains spanned
//	B(S)  B·S/(S + S½), ring bandwidth per device inside, bytes/s
//	W     bandwidth out of one domain, shared by its k groups, bytes/s
//	α, β  hop latency inside a domain and between, seconds
//
// The slower of the two levels bounds a pipelined hierarchical ring. Sources:
// Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005 (alpha-beta costs); NVIDIA nccl-tests
// PERFORMANCE.md (bus bandwidth).
func (m *machine) passSec(r ring, bytes float64) float64 {
	if r.n <= 1 || bytes <= 0 {
		return 0
	}
	t := 0.0
	if r.inner > 1 {
		t = (r.inner - 1) / r.inner * (bytes + m.k.ringHalf) / m.intra
	}
	if q := r.n / r.inner; q > 1 {
		t = max(t, (q-1)/q*bytes*r.groups/m.inter) + m.k.netHopSec*log2(q)
	}
	return t + m.share.hop*log2(r.inner)
}

// ringLatency returns what a reduce-scatter or an all-gather takes beyond its
// bytes: n-1 steps around the ring, of which those over the network set the
// pace. NCCL has no tree for these two.
func (m *machine) ringLatency(r ring) float64 {
	if r.n <= r.inner {
		return m.share.hop * log2(r.inner)
	}
	return m.k.netHopSec * (r.n - 1)
}

// allToAllSec returns the time in which every rank sends bytes spread evenly
// over the others: what leaves the domain goes over the network.
func (m *machine) allToAllSec(r ring, bytes float64) float64 {
	if r.n <= 1 {
		return 0
	}
	t := (r.inner - 1) / r.n * bytes / m.intra
	if outside := (r.n - r.inner) / r.n; outside > 0 {
		t = max(t, outside*bytes*r.groups*r.inner/m.inter)
	}
	return t + m.share.hop*log2(r.n)
}

// sendSec returns the time of sending bytes to the next pipeline stage: over
// the network, which so many ranks of a domain use at once, or inside the domain
// if there are none.
func (m *machine) sendSec(bytes float64, senders int) float64 {
	if senders > 0 {
		return bytes*float64(senders)/m.inter + m.share.hop
	}
	return bytes/m.intra + m.share.hop
}

// exposed returns what is left on the critical path of traffic that may run
// behind hidden seconds of compute, both in seconds, by a smooth maximum:
//
//	(T⁴ + H⁴)^(1/4) − H, plus hiddenCost of what did hide
//
// Kernels lose some of their rate to the traffic behind them (Isaev et al.,
// "Calculon", SC 2023).
func (m *machine) exposed(traffic, hidden float64) float64 {
	if hidden <= 0 || traffic <= 0 {
		return traffic
	}
	out := smoothMax(traffic, hidden) - hidden
	return out + m.k.hiddenCost*(traffic-out)
}
