package optimus

import (
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/dataparallel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Family is the family "optimus".
var Family = perfmodel.Family{
	Name: "optimus",
	Doc:  "data parallel step time, linear in functions of workers and parameter servers, fitted by non-negative least squares (Peng et al., Optimus, EuroSys 2018)",
	Fit:  fit,
	Load: load,
}

// point holds the values of a configuration that the forms use.
type point struct {
	Workers, Servers int
	Samples          int  // per worker and step: M/w, for the global batch M of the published forms
	Spread           bool // on several nodes; always false with parameter servers
}

func newPoint(c *spec.Config) point {
	p := c.Plan.Normal()
	x := point{Workers: p.DP, Servers: p.ParamServers, Samples: p.MicroBatch * p.AccumSteps}
	x.Spread = p.ParamServers == 0 && c.Shape.Nodes() > 1
	return x
}

// form is the step time formula of one kind of training: a sum of terms θi·xi in seconds with θi >= 0.
type form struct {
	terms []formParam
	// values returns xi, one for each term.
	values func(x point) []float64
}

type formParam struct{ name, unit string }

// The forms, by kind of training. With w workers, p parameter servers and M/w samples per worker and step:
//
//	synchronous   T = θ0·M/w + θ1 + θ2·w/p + θ3·w + θ4·p
//	asynchronous  T =          θ0 + θ1·w/p + θ2·w + θ3·p
//	all-reduce    T = θ0·M/w + θ1 + θ2·(w-1)/w + θ3·w + θ4·[several nodes]
//
// The terms are the forward pass, the backward pass with all fixed costs, the transfer to and updates on the
// servers, and the overhead per worker and server. An asynchronous step is w updates, one per worker on
// average, each with the same number of samples.
//
// Source: Peng et al., "Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters", EuroSys
// 2018, section 3.2, and the code pengyanghua/optimus@8c43920, which fit steps/s, f = 1/T and f = w/T. Differs:
// the paper has no form for all-reduce. The form here replaces the server terms by the ring's share (w-1)/w of
// the gradient (Patarasuk and Yuan, JPDC 2009) and a cost of using several nodes. It was chosen before it was
// tried on data.
var (
	syncForm = form{
		terms: []formParam{{"batch", "s/sample"}, {"fixed", "s"}, {"workers_per_server", "s·server/worker"}, {"workers", "s/worker"}, {"servers", "s/server"}},
		values: func(x point) []float64 {
			w, p := float64(x.Workers), float64(x.Servers)
			return []float64{float64(x.Samples), 1, w / p, w, p}
		}}
	asyncForm = form{
		terms: []formParam{{"fixed", "s"}, {"workers_per_server", "s·server/worker"}, {"workers", "s/worker"}, {"servers", "s/server"}},
		values: func(x point) []float64 {
			w, p := float64(x.Workers), float64(x.Servers)
			return []float64{1, w / p, w, p}
		}}
	ringForm = form{
		terms: []formParam{{"batch", "s/sample"}, {"fixed", "s"}, {"ring", "s"}, {"workers", "s/worker"}, {"several_nodes", "s"}},
		values: func(x point) []float64 {
			w, spread := float64(x.Workers), 0.0
			if x.Spread {
				spread = 1
			}
			return []float64{float64(x.Samples), 1, (w - 1) / w, w, spread}
		}}
)

// formOf returns the form of a job.
func formOf(j dataparallel.Job) *form {
	switch {
	case j.Update > 0:
		return &asyncForm
	case j.Servers:
		return &syncForm
	}
	return &ringForm
}

// seconds returns T for parameters theta.
func (f *form) seconds(x point, theta []float64) float64 {
	sec := 0.0
	for i, v := range f.values(x) {
		sec += theta[i] * v
	}
	return sec
}
