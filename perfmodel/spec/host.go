package spec

import (
	"fmt"
	"math"
)

// Host is an amount of CPUs and memory of a node, as a job requests them. Both are integers, so that sums are
// exact.
type Host struct {
	MilliCPUs int64 // CPU threads, in thousandths
	Bytes     int64 // memory
}

// Unlimited is more than all jobs on a node can request together.
const Unlimited = math.MaxInt64 / 2

// maxHost is the largest request per device: a million CPU threads, 16 TiB.
var maxHost = Host{1e9, 1 << 44}

// Plus returns the sum of h and o.
func (h Host) Plus(o Host) Host { return Host{h.MilliCPUs + o.MilliCPUs, h.Bytes + o.Bytes} }

// Times returns n times h; n may be negative.
func (h Host) Times(n int) Host { return Host{h.MilliCPUs * int64(n), h.Bytes * int64(n)} }

// Max returns the larger of the CPUs and the larger of the memory of h and o.
func (h Host) Max(o Host) Host { return Host{max(h.MilliCPUs, o.MilliCPUs), max(h.Bytes, o.Bytes)} }

// Covers reports whether h has at least the CPUs and the memory of o.
func (h Host) Covers(o Host) bool { return h.MilliCPUs >= o.MilliCPUs && h.Bytes >= o.Bytes }

// Room returns the number of devices, at most n, for which h suffices if each needs need.
func (h Host) Room(need Host, n int) int {
	if need.MilliCPUs > 0 {
		n = int(min(int64(n), h.MilliCPUs/need.MilliCPUs))
	}
	if need.Bytes > 0 {
		n = int(min(int64(n), h.Bytes/need.Bytes))
	}
	return n
}

// check reports a request out of range; each names the unit, such as "device".
func (h Host) check(each string) error {
	if h.MilliCPUs < 0 || h.Bytes < 0 || h.MilliCPUs > maxHost.MilliCPUs || h.Bytes > maxHost.Bytes {
		return fmt.Errorf("%g CPUs and %d bytes of host memory per %s, want 0..%d and 0..%d",
			float64(h.MilliCPUs)/1000, h.Bytes, each, maxHost.MilliCPUs/1000, maxHost.Bytes)
	}
	return nil
}

// String writes h as "2.5 CPUs and 4096 bytes", with "any" for an unlimited amount.
func (h Host) String() string {
	cpus, bytes := fmt.Sprintf("%g", float64(h.MilliCPUs)/1000), fmt.Sprintf("%d bytes", h.Bytes)
	if h.Bytes >= 1<<20 {
		bytes = fmt.Sprintf("%.4g GiB", float64(h.Bytes)/(1<<30))
	}
	if h.MilliCPUs > Unlimited/2 {
		cpus = "any"
	}
	if h.Bytes > Unlimited/2 {
		bytes = "any bytes"
	}
	return cpus + " CPUs and " + bytes
}

// Host returns the CPUs and memory of one node of g, Unlimited if they are not limited.
func (g *NodeGroup) Host() Host {
	h := Host{Unlimited, Unlimited}
	if g.CPUs > 0 {
		h.MilliCPUs = 1000 * int64(g.CPUs)
	}
	if g.HostBytes > 0 && g.HostBytes < Unlimited {
		h.Bytes = int64(g.HostBytes)
	}
	return h
}

// Room returns the number of devices that a job can use on an idle node if it needs need for each.
func (g *NodeGroup) Room(need Host) int { return g.Host().Room(need, g.Devices) }

// MostDevices returns the number of devices that a job can use on an idle g if it needs need for each.
func (g *NodeGroup) MostDevices(need Host) int { return g.Count * g.Room(need) }
