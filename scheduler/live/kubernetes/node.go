package kubernetes

import (
	"fmt"
	"slices"

	core "k8s.io/api/core/v1"

	"github.com/pacer-ml/pacer/scheduler/live"
)

// AcceleratorLabels name the accelerator of a node, in this order: pacer's own, then those of the
// vendors' device plugins and of clouds.
var AcceleratorLabels = []string{"pacer.dev/accelerator", "nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator"}

// keep returns a node of a cluster as it was last seen to have devices, in place of one that has none now, or cannot be used.
// Its kubelet was restarted and its device plugin has not registered yet, or a label was taken off: pods on it run on, and
// none starts.
func keep(last, now live.Node, err error) (live.Node, live.Fault) {
	last.Mode = max(now.Mode, live.Draining)
	if err == nil {
		err = fmt.Errorf("has no devices, and had %d", last.Type.Devices)
	}
	return last, live.Fault{Object: "node " + now.Name, Err: fmt.Errorf("%w: it keeps its jobs and gets no others", err)}
}

// nodeOf returns a node, false if it has no devices. The error says why it cannot be used.
func (c *Cluster) nodeOf(n *core.Node) (live.Node, bool, error) {
	out := live.Node{Name: n.Name, Mode: modeOf(n)}
	devices, healthy := 0, 0
	for _, r := range DeviceResources {
		all, usable := n.Status.Capacity[r], n.Status.Allocatable[r]
		if devices, healthy = int(max(all.Value(), usable.Value())), int(usable.Value()); devices > 0 {
			break
		}
	}
	if devices < 1 {
		return out, false, nil
	}
	if healthy == 0 { // the device plugin restarts: pods that run keep their devices, and none starts
		out.Mode = max(out.Mode, live.Draining)
	}
	out.UsedDevices = devices - healthy // of these, observeNodes takes off what pods hold
	name := ""
	for _, l := range AcceleratorLabels {
		if name = n.Labels[l]; name != "" {
			break
		}
	}
	if name == "" {
		return out, true, fmt.Errorf("has %d devices of an unknown type, want the label %s", devices, AcceleratorLabels[0])
	}
	if n.Labels[hostname] == "" {
		return out, true, fmt.Errorf("has no label %s, by which pods are placed", hostname)
	}
	g, err := c.NodeType(name, devices)
	if err != nil {
		return out, true, fmt.Errorf("accelerator %q: %w", name, err)
	}
	g.Count, g.Devices = 1, devices
	g.CPUs = int(n.Status.Allocatable.Cpu().Value())
	g.HostBytes = float64(n.Status.Allocatable.Memory().Value())
	out.Type = g
	return out, true, nil
}

// modeOf says whether a node takes pods. Taints of devices keep other pods away, not those that
// request them.
func modeOf(n *core.Node) live.Mode {
	mode := live.Down
	for _, c := range n.Status.Conditions {
		if c.Type == core.NodeReady && c.Status == core.ConditionTrue {
			mode = live.Up
		}
	}
	if mode == live.Up && n.Spec.Unschedulable {
		return live.Draining
	}
	for _, t := range n.Spec.Taints {
		switch {
		case mode != live.Up || t.Effect == core.TaintEffectPreferNoSchedule:
		case t.Key == core.TaintNodeUnreachable || t.Key == core.TaintNodeNotReady:
			return live.Down
		case !isDevice(core.ResourceName(t.Key)):
			return live.Draining
		}
	}
	return mode
}

func isDevice(name core.ResourceName) bool { return slices.Contains(DeviceResources, name) }
