package shapeless

import (
	"math"
	"slices"
)

// Indices of the constants of serversForm.
const (
	psFixed = iota
	psSample
	psSync
	psServer
	psPull
	psWorker
	psTask
	psUneven // of two servers, then of each larger number
	psParams = psUneven + psMostServers - 1
)

// psMostServers is the largest number of servers with its own fitted unevenness.
const psMostServers = 24

// serversForm is a synchronous step of w workers with b samples each and p
// parameter servers, s micro-batches per step:
//
//	T = s·(a + c·b) + S·√V·((s0 + s1·w)·u(p)^(1/(1+V))/p + s2·w + s3·p)
//
//	a,c   forward and backward on one worker, seconds, and seconds per sample
//	S     scale of the exchange, seconds; V is parameters over refParams
//	s0    work of the servers once per step, divided among them: updates
//	s1    work of the servers for every worker: receiving, adding and sending
//	s2,s3 growth with the number of workers and servers: waiting, connections
//
//	u(p)  share of the largest server over 1/p, u(1) = 1
//
// The form is that of Peng et al., Optimus, EuroSys 2018, section 3.2, for synchronous training. Differs: it
// has s0 and u in addition, and is fitted to logarithms. Servers have uneven shares because MXNet distributes
// whole arrays: those below a million parameters go to the server given by a hash of their key, larger ones are
// split into p parts (MXNET_KVSTORE_BIGARRAY_BOUND). So u is not monotone in p and similar for models of many
// layers. It matters less with more parameters, since most are then in large arrays: hence the exponent. The
// kernel covers the remaining error of each number of servers above one. Terms s0 and u, spreads and kernel
// were chosen with DL2's measurements in view.
var serversForm = &form{
	name: "parameter servers",
	params: append([]formParam{
		psFixed:  {"a", 0.2, 1, 0.7, 0.4},
		psSample: {"c", 0.005, 1.5, 0.7, 0.4},
		psSync:   {"S", 0.2, 1.2, 1, 0.3},
		psServer: {"s0", 0.5, 1.2, 0.5, 0.5},
		psPull:   {"s1", 0.4, 1, 0.5, 0.5},
		psWorker: {"s2", 0.1, 0.5, 0.5, 0.3},
		psTask:   {"s3", 0.01, 0.5, 0.5, 0.3},
	}, slices.Repeat([]formParam{{"u", 1, 0.02, 0.5, 0.05}}, psParams-psUneven)...),
	kernel:  formKernel{batchSD: 0.2, batchScale: 3, placeSD: 0.15, placeScale: 2, stepSD: 0.03, rowSD: 0.03, serversSD: 0.05},
	start:   serversStart,
	logTime: serversLogTime,
}

// serversStart assumes that the fastest row spends half of its time computing and half exchanging.
func serversStart(d *data, p []float64) {
	if len(d.at) == 0 {
		return
	}
	fast := 0
	for i := range d.y {
		if d.y[i] < d.y[fast] {
			fast = i
		}
	}
	x := &d.at[fast]
	p[psFixed] = d.y[fast] + math.Log(0.3)
	p[psSample] = d.y[fast] + math.Log(0.2/x.batch)
	p[psSync] = d.y[fast] - math.Log(x.volume)/2
}

func serversLogTime(x *formPoint, p, grad []float64) (float64, [2]float64) {
	var e [psUneven]float64
	for i := range e {
		e[i] = math.Exp(logBound(p[i]))
	}
	messages, held := e[psSync]*math.Sqrt(x.volume), 1/x.servers
	uneven, small := psUneven+int(x.servers)-2, 1/(1+x.volume)
	known := x.servers > 1 && x.servers <= psMostServers
	if known {
		held *= math.Exp(small * logBound(p[uneven]))
	}
	parts := [psUneven]float64{
		psFixed:  x.accum * e[psFixed],
		psSample: x.accum * e[psSample] * x.batch,
		psServer: messages * e[psServer] * held,
		psPull:   messages * e[psPull] * x.devices * held,
		psWorker: messages * e[psWorker] * x.devices,
		psTask:   messages * e[psTask] * x.servers,
	}
	compute, sync := 0.0, 0.0
	for i, v := range parts {
		if i < psSync {
			compute += v
		} else {
			sync += v
		}
	}
	t := compute + sync
	if grad != nil {
		for i, v := range parts {
			grad[i] = v / t
		}
		grad[psSync] = sync / t
		if known {
			grad[uneven] = small * (parts[psServer] + parts[psPull]) / t
		}
	}
	return math.Log(t), [2]float64{compute / t, sync / t}
}
