package shapeless

import (
	"math"
	"slices"
)

// Indices of the constants of serversForm.
const (
	osFixed = iota
	osSample
	osSync
	osServer
	osPull
	osWorker
	osTask
	osUneven // of two servers, then of each number more
	osParams = osUneven + osMostServers - 1
)

// osMostServers is the largest number of servers with a fitted unevenness.
const osMostServers = 24

// serversForm is a synchronous step of w workers with b samples each and p
// parameter servers, s micro-batches per step:
//
//	T = s·(a + c·b) + S·√V·((s0 + s1·w)·u(p)^(1/(1+V))/p + s2·w + s3·p)
//
//	a,c   forward and backward on one worker, seconds, and seconds per sample
//	S     scale of the exchange, seconds; V parameters over refParams
//	s0    work of the servers once a step, shared by them: updating
//	s1    their work for every worker: receiving, adding and sending
//	s2,s3 growth with the number of workers and servers: waiting, connections
//
//	u(p)  share of the largest server over 1/p, u(1) = 1
//
// The form is that of Peng et al., Optimus, EuroSys 2018, section 3.2, for
// synchronous training, with s0 and u besides, and fitted to logarithms. Servers
// share unevenly as MXNet spreads arrays over them: those below a million
// parameters go whole to the server that a hash of their key names, larger ones
// are cut in p (MXNET_KVSTORE_BIGARRAY_BOUND). So u follows no order in p, has
// something in common between models of many layers, and matters less the more
// parameters there are, as most are then in large arrays: hence the exponent. The
// kernel has what is left of each number of servers, above one. Terms s0 and u,
// spreads and kernel were chosen with DL2's measurements in view.
var serversForm = &form{
	name: "parameter servers",
	params: append([]formParam{
		osFixed:  {"a", 0.2, 1, 0.7, 0.4},
		osSample: {"c", 0.005, 1.5, 0.7, 0.4},
		osSync:   {"S", 0.2, 1.2, 1, 0.3},
		osServer: {"s0", 0.5, 1.2, 0.5, 0.5},
		osPull:   {"s1", 0.4, 1, 0.5, 0.5},
		osWorker: {"s2", 0.1, 0.5, 0.5, 0.3},
		osTask:   {"s3", 0.01, 0.5, 0.5, 0.3},
	}, slices.Repeat([]formParam{{"u", 1, 0.02, 0.5, 0.05}}, osParams-osUneven)...),
	kernel:  formKernel{batchSD: 0.2, batchScale: 3, placeSD: 0.15, placeScale: 2, stepSD: 0.03, rowSD: 0.03, serversSD: 0.05},
	start:   serversStart,
	logTime: serversLogTime,
}

// serversStart assumes that the fastest row is half computing and half exchanging.
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
	p[osFixed] = d.y[fast] + math.Log(0.3)
	p[osSample] = d.y[fast] + math.Log(0.2/x.batch)
	p[osSync] = d.y[fast] - math.Log(x.volume)/2
}

func serversLogTime(x *formPoint, p, grad []float64) (float64, [2]float64) {
	var e [osUneven]float64
	for i := range e {
		e[i] = math.Exp(logBound(p[i]))
	}
	messages, held := e[osSync]*math.Sqrt(x.volume), 1/x.servers
	uneven, small := osUneven+int(x.servers)-2, 1/(1+x.volume)
	known := x.servers > 1 && x.servers <= osMostServers
	if known {
		held *= math.Exp(small * logBound(p[uneven]))
	}
	parts := [osUneven]float64{
		osFixed:  x.accum * e[osFixed],
		osSample: x.accum * e[osSample] * x.batch,
		osServer: messages * e[osServer] * held,
		osPull:   messages * e[osPull] * x.devices * held,
		osWorker: messages * e[osWorker] * x.devices,
		osTask:   messages * e[osTask] * x.servers,
	}
	compute, sync := 0.0, 0.0
	for i, v := range parts {
		if i < osSync {
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
		grad[osSync] = sync / t
		if known {
			grad[uneven] = small * (parts[osServer] + parts[osPull]) / t
		}
	}
	return math.Log(t), [2]float64{compute / t, sync / t}
}
