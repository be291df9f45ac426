package spec

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// NodeGroup is Count equal nodes.
type NodeGroup struct {
	Count       int
	Devices     int // per node
	Accelerator Accelerator
	CPUs        int     // per node, 0 = not limited
	HostBytes   float64 // per node, 0 = not limited
	Link        Link
	Racks       Racks
}

// Racks describes the network between the nodes of a group. The zero value means that one network connects all
// of them.
type Racks struct {
	Nodes int     // consecutive nodes that share a switch; 0 = all
	Bps   float64 // between racks: out of one node, all its NICs together, one direction, bytes/s
}

// Of returns the rack of a node. Both are numbered from 0 within the group.
func (r Racks) Of(node int) int {
	if r.Nodes < 1 {
		return 0
	}
	return node / r.Nodes
}

// Cluster is the set of nodes that a scheduler manages. Nodes are numbered from 0, group by group.
type Cluster struct {
	Groups []NodeGroup
}

// Nodes returns the number of nodes.
func (c Cluster) Nodes() int {
	n := 0
	for _, g := range c.Groups {
		n += g.Count
	}
	return n
}

// Devices returns the number of devices.
func (c Cluster) Devices() int {
	n := 0
	for _, g := range c.Groups {
		n += g.Count * g.Devices
	}
	return n
}

// Validate reports an empty cluster, or a group without nodes, without devices or with invalid racks.
func (c Cluster) Validate() error {
	if len(c.Groups) == 0 {
		return errors.New("spec: the cluster has no nodes")
	}
	for i, g := range c.Groups {
		if g.Count < 1 || g.Devices < 1 {
			return fmt.Errorf("spec: cluster group %d: %d nodes x %d devices, both must be at least 1", i+1, g.Count, g.Devices)
		}
		if r := g.Racks; r != (Racks{}) && (r.Nodes < 1 || !(r.Bps > 0) || math.IsInf(r.Bps, 0)) {
			return fmt.Errorf("spec: cluster group %d: racks of %d nodes with %g bytes/s between them, want both above 0, or neither", i+1, r.Nodes, r.Bps)
		}
	}
	return nil
}

// GroupOf returns the index of the group that a node is in, -1 if there is no such node.
func (c Cluster) GroupOf(node int) int {
	for i := range c.Groups {
		if n := c.Groups[i].Count; node >= n {
			node -= n
		} else if node >= 0 {
			return i
		}
	}
	return -1
}

// LinkOf returns the network of a job on the nodes first to last, all of one group. Its InterBps is at most
// Racks.Bps if first and last are in different racks.
func (c Cluster) LinkOf(first, last int) Link {
	for i := range c.Groups {
		g := &c.Groups[i]
		if last >= g.Count {
			first, last = first-g.Count, last-g.Count
			continue
		}
		l := g.Link
		if g.Racks.Of(first) != g.Racks.Of(last) && !(l.InterBps > 0 && l.InterBps < g.Racks.Bps) {
			l.InterBps = g.Racks.Bps
		}
		return l
	}
	return Link{}
}

// ParseCluster reads a cluster written as comma-separated groups:
//
//	8x8xA800                          nodes x devices x accelerator
//	20x4                              nodes x devices of an unnamed type
//	v100=36,p100=36,k80=36            one device per node
//	48x2xGTX1080Ti/8cpus              with 8 CPUs per node instead of resolve's
//
// resolve fills the rest of a group, given the accelerator's name (as written, "" for unnamed) and the devices
// per node: Accelerator, CPUs, HostBytes and Link. ParseCluster stops at its first error.
func ParseCluster(s string, resolve func(name string, devices int) (NodeGroup, error)) (Cluster, error) {
	var c Cluster
	for _, item := range strings.Split(s, ",") {
		item, cpus, err := cutCPUs(strings.TrimSpace(item))
		if err != nil {
			return Cluster{}, fmt.Errorf("spec: cluster %q: %w", s, err)
		}
		count, devices, name, err := parseGroup(item)
		if err != nil {
			return Cluster{}, fmt.Errorf("spec: cluster %q: %w", s, err)
		}
		g, err := resolve(name, devices)
		if err != nil {
			return Cluster{}, fmt.Errorf("spec: cluster %q: %w", s, err)
		}
		g.Count, g.Devices = count, devices
		if cpus > 0 {
			g.CPUs = cpus
		}
		c.Groups = append(c.Groups, g)
	}
	return c, c.Validate()
}

// cutCPUs splits "/8cpus" off a group.
func cutCPUs(item string) (group string, cpus int, err error) {
	group, text, found := strings.Cut(item, "/")
	if !found {
		return group, 0, nil
	}
	number, unit := strings.CutSuffix(text, "cpus")
	cpus, err = strconv.Atoi(number)
	if err != nil || !unit || cpus < 1 || cpus > maxDegree {
		return "", 0, fmt.Errorf("%q: want a number of CPUs per node in 1..%d after /, such as /8cpus", item, maxDegree)
	}
	return group, cpus, nil
}

func parseGroup(item string) (count, devices int, name string, err error) {
	bad := fmt.Errorf("%q is not NODESxDEVICES, NODESxDEVICESxTYPE or TYPE=NODES", item)
	if n, v, ok := strings.Cut(item, "="); ok {
		count, err = strconv.Atoi(v)
		if err != nil || n == "" {
			return 0, 0, "", bad
		}
		return checkGroup(item, count, 1, n)
	}
	parts := strings.SplitN(item, "x", 3)
	if len(parts) < 2 {
		return 0, 0, "", bad
	}
	count, err1 := strconv.Atoi(parts[0])
	devices, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return 0, 0, "", bad
	}
	if len(parts) == 3 {
		if name = parts[2]; name == "" {
			return 0, 0, "", bad
		}
	}
	return checkGroup(item, count, devices, name)
}

func checkGroup(item string, count, devices int, name string) (int, int, string, error) {
	if count < 1 || devices < 1 || count > maxDegree || devices > maxDegree {
		return 0, 0, "", fmt.Errorf("%q: nodes and devices must be in 1..%d", item, maxDegree)
	}
	return count, devices, name, nil
}
