package scheduler

import "github.com/pacer-ml/pacer/perfmodel/spec"

// HostSpeeds predicts how the speed of jobs depends on the CPUs and the memory of their
// hosts. It is safe for concurrent use.
type HostSpeeds interface {
	// Relative returns the speed of j on a number of devices with CPUs and memory per device,
	// in terms of its predicted or recorded speed; false if it is unknown. It does not fall
	// with more of either. j is not modified and not kept.
	Relative(j *spec.Job, devices int, each spec.Host) (float64, bool)
}

// ProportionalHost returns the CPUs and memory per device of a node of g that gives each
// device the same part, spec.Unlimited where it does not limit them.
func ProportionalHost(g *spec.NodeGroup) spec.Host {
	h := g.Host()
	if h.MilliCPUs < spec.Unlimited {
		h.MilliCPUs /= int64(g.Devices)
	}
	if h.Bytes < spec.Unlimited {
		h.Bytes /= int64(g.Devices)
	}
	return h
}
