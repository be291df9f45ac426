package recording

import (
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// nodeState is a node. A node that comes back with another type is another node.
type nodeState struct {
	live.Node        // the name is unique
	name      string // in the file
	outages   []outage
	used      []usedSince // by others, ascending
	drained   time.Time   // since when it drains, zero = it does not
}

// usedSince is what others hold of a node from a time on.
type usedSince struct {
	at      time.Time
	devices int
	host    spec.Host
}

// outage is a time at which a node is down.
type outage struct{ drained, down, up time.Time } // zero = was not drained; since before the recording; still down

// addNode takes the state of a node over.
func (s *state) addNode(o *node) error {
	if o.Name == "" || o.Type < 0 || o.Type >= len(s.types) {
		return fmt.Errorf("node %q: type %d is not one of the %d of the session", o.Name, o.Type, len(s.types))
	}
	kind := s.types[o.Type]
	if o.Used < 0 || o.Used > kind.Devices {
		return fmt.Errorf("node %q: %d used devices of %d", o.Name, o.Used, kind.Devices)
	}
	if o.UsedMilliCPUs < 0 || o.UsedBytes < 0 {
		return fmt.Errorf("node %q: used_milli_cpus %d, used_bytes %d, want at least 0", o.Name, o.UsedMilliCPUs, o.UsedBytes)
	}
	n := s.names[o.Name]
	if n != nil && n.Type != kind {
		s.gone(n)
		n = nil
	}
	for _, known := range s.nodes {
		if n == nil && known.name == o.Name && known.Type == kind {
			n = known
		}
	}
	if n == nil {
		n = &nodeState{name: o.Name, Node: live.Node{Name: o.Name, Type: kind, Mode: live.Down}}
		for _, known := range s.nodes {
			if known.Name == n.Name {
				n.Name += "'"
			}
		}
		n.outages = []outage{{}}
		s.nodes = append(s.nodes, n)
	}
	s.names[o.Name] = n
	n.UsedDevices, n.UsedHost = o.Used, spec.Host{MilliCPUs: o.UsedMilliCPUs, Bytes: o.UsedBytes}
	s.use(n)
	s.setMode(n, o.Mode)
	return nil
}

// use takes over what others hold of a node.
func (s *state) use(n *nodeState) {
	now := usedSince{s.now, n.UsedDevices, n.UsedHost}
	last := usedSince{}
	if len(n.used) > 0 {
		last = n.used[len(n.used)-1]
	}
	if now.devices != last.devices || now.host != last.host {
		n.used = append(n.used, now)
	}
}

// gone takes a node out of the cluster.
func (s *state) gone(n *nodeState) {
	s.setMode(n, live.Down)
	n.UsedDevices, n.UsedHost = 0, spec.Host{}
	s.use(n)
	delete(s.names, n.name)
}

// setMode takes the mode of a node over.
func (s *state) setMode(n *nodeState, m live.Mode) {
	switch {
	case n.Mode != live.Down && m == live.Down:
		n.outages = append(n.outages, outage{drained: n.drained, down: s.now})
	case n.Mode == live.Down && m != live.Down:
		n.outages[len(n.outages)-1].up = s.now
	}
	if m != live.Draining {
		n.drained = time.Time{}
	} else if n.drained.IsZero() {
		n.drained = s.now
	}
	n.Mode = m
}
