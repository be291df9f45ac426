package spec

import (
	"fmt"
	"math"
)

// Host is what a job holds of nodes beside their devices. Both count whole units,
// so that what is taken and given back adds up.
type Host struct {
	MilliCPUs int64 // CPU threads, in thousandths
	Bytes     int64 // memory
}

// Unlimited is more than all jobs on a node can ask for.
const Unlimited = math.MaxInt64 / 2

// maxHost bounds what a job may ask for each device: a million CPU threads, 16 TiB.
var maxHost = Host{1e9, 1 << 44}

// Plus returns h and o together.
func (h Host) Plus(o Host) Host { return Host{h.MilliCPUs + o.MilliCPUs, h.Bytes + o.Bytes} }

// Times returns n times h; -1 times is what is given back.
func (h Host) Times(n int) Host { return Host{h.MilliCPUs * int64(n), h.Bytes * int64(n)} }

// Max returns of both what is more, each of CPUs and memory by itself.
func (h Host) Max(o Host) Host { return Host{max(h.MilliCPUs, o.MilliCPUs), max(h.Bytes, o.Bytes)} }

// Covers reports whether h is at least o.
func (h Host) Covers(o Host) bool { return h.MilliCPUs >= o.MilliCPUs && h.Bytes >= o.Bytes }

// Room returns for how many devices h suffices, n at most, if each needs so much.
func (h Host) Room(need Host, n int) int {
	if need.MilliCPUs > 0 {
		n = int(min(int64(n), h.MilliCPUs/need.MilliCPUs))
	}
	if need.Bytes > 0 {
		n = int(min(int64(n), h.Bytes/need.Bytes))
	}
	return n
}

// check reports what cannot be asked for, for each of something.
func (h Host) check(each string) error {
	if h.MilliCPUs < 0 || h.Bytes < 0 || h.MilliCPUs > maxHost.MilliCPUs || h.Bytes > maxHost.Bytes {
		return fmt.Errorf("%g CPUs and %d bytes of host memory per %s, want 0..%d and 0..%d",
			float64(h.MilliCPUs)/1000, h.Bytes, each, maxHost.MilliCPUs/1000, maxHost.Bytes)
	}
	return nil
}

// String writes h as "2.5 CPUs and 4096 bytes", "any" where it is not limited.
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

// Host returns what a node of g has, Unlimited where it is not limited.
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

// Room returns how many devices of an idle node a job can have that needs so much
// for each.
func (g *NodeGroup) Room(need Host) int { return g.Host().Room(need, g.Devices) }

// MostDevices returns how many devices of g a job can have at once that needs so
// much of the host for each.
func (g *NodeGroup) MostDevices(need Host) int { return g.Count * g.Room(need) }
