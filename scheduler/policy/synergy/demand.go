package synergy

import (
	"sort"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// demandKey identifies jobs with the same best-case demand on nodes of one kind.
type demandKey struct {
	model           string
	seq, batch      int
	devices, onNode int
	request         spec.Host
	node            spec.Host
	nodeDevices     int
}

// demand returns the best-case demand of a job per device in a group of nodes, with at most
// onNode devices on one: the least CPUs, then the least memory, with which its speed is at
// least the saturated part of that with a whole node. It is at least the request. A job of
// unknown sensitivity has the proportional share; where hosts have no limit, nothing but the
// request.
func (p *synergy) demand(j *spec.Job, g *spec.NodeGroup, onNode int) spec.Host {
	if p.hosts == nil {
		return j.Host
	}
	key := demandKey{model: j.Model.Name, seq: j.SeqLen, batch: j.Batch(), devices: j.Devices, onNode: onNode, request: j.Host, node: g.Host(), nodeDevices: g.Devices}
	if h, ok := p.demands[key]; ok {
		return h
	}
	h := p.findDemand(j, g, onNode).Max(j.Host)
	p.demands[key] = h
	return h
}

// core is a CPU, the unit in which they are given.
const core = 1000

func (p *synergy) findDemand(j *spec.Job, g *spec.NodeGroup, onNode int) (need spec.Host) {
	has := g.Host()
	most := spec.Host{MilliCPUs: has.MilliCPUs / int64(onNode), Bytes: has.Bytes / int64(onNode)}
	part := scheduler.ProportionalHost(g)
	best, ok := p.hosts.Relative(j, j.Devices, most)
	enough := func(h spec.Host) bool {
		v, _ := p.hosts.Relative(j, j.Devices, h)
		return v >= p.saturation*best
	}
	const gigabyte = int64(1e9)
	if has.MilliCPUs < spec.Unlimited {
		need.MilliCPUs = part.MilliCPUs
		if ok {
			n := sort.Search(int(most.MilliCPUs/core), func(n int) bool { return enough(spec.Host{MilliCPUs: core * int64(n+1), Bytes: most.Bytes}) })
			need.MilliCPUs = min(core*int64(n+1), most.MilliCPUs)
		}
	}
	if has.Bytes < spec.Unlimited {
		need.Bytes = part.Bytes
		if ok {
			cpus := most.MilliCPUs
			if need.MilliCPUs > 0 {
				cpus = need.MilliCPUs
			}
			n := sort.Search(int(most.Bytes/gigabyte), func(n int) bool { return enough(spec.Host{MilliCPUs: cpus, Bytes: gigabyte * int64(n+1)}) })
			need.Bytes = min(gigabyte*int64(n+1), most.Bytes)
		}
	}
	return need
}

// speed returns the relative speed of j with hosts per device, 1 if it is unknown.
func (p *synergy) speed(j *spec.Job, each spec.Host) float64 {
	if p.hosts != nil {
		if v, ok := p.hosts.Relative(j, j.Devices, each); ok {
			return v
		}
	}
	return 1
}

// least returns the smaller of the CPUs and of the memory of two hosts.
func least(a, b spec.Host) spec.Host {
	return spec.Host{MilliCPUs: min(a.MilliCPUs, b.MilliCPUs), Bytes: min(a.Bytes, b.Bytes)}
}

// hostOf returns the CPUs and memory per device of a grant.
func hostOf(g *scheduler.Grant) spec.Host {
	s := g.Slots[0]
	n := int64(max(s.Devices, 1))
	return spec.Host{MilliCPUs: s.Host.MilliCPUs / n, Bytes: s.Host.Bytes / n}
}

// withHost returns a copy of g with other CPUs and memory per device.
func withHost(g *scheduler.Grant, each spec.Host) *scheduler.Grant {
	out := *g
	out.Slots = make([]scheduler.Slot, len(g.Slots))
	for i, s := range g.Slots {
		s.Host = each.Times(s.Devices)
		out.Slots[i] = s
	}
	return &out
}
