package family

import "math"

const (
	osFixed = iota
	osSample
	osPull
	osWorker
	osServer
	osParams
)

// serversForm is the step of a job of w workers and p parameter servers.
var serversForm = &opaqueForm{
	name: "parameter servers",
	params: []opaqueParam{
		osFixed:  {"th1", 0.3, 1, 0.7, 0.5},
		osSample: {"th0", 0.01, 1, 0.7, 0.5},
		osPull:   {"th2", 0.1, 1, 0.7, 0.5},
		osWorker: {"th3", 0.02, 1, 0.7, 0.5},
		osServer: {"th4", 0.005, 1, 0.7, 0.5},
	},
	start:   serversStart,
	logTime: serversLogTime,
}

func serversLogTime(x *opaquePoint, p, grad []float64) (float64, [2]float64) {
	var e [osParams]float64
	for i, v := range p[:osParams] {
		e[i] = math.Exp(v)
	}
	parts := [osParams]float64{e[osFixed], e[osSample] * x.batch, e[osPull] * x.devices / x.servers, e[osWorker] * x.devices, e[osServer] * x.servers}
	t := 0.0
	for _, v := range parts {
		t += v
	}
	if grad != nil {
		for i, v := range parts {
			grad[i] = v / t
		}
	}
	own := (parts[osFixed] + parts[osSample]) / t
	return math.Log(t), [2]float64{own, 1 - own}
}

func serversStart(d *opaqueData, p []float64) {}
