package kubernetes

import (
	"fmt"

	core "k8s.io/api/core/v1"

	"github.com/pacer-ml/pacer/scheduler/live"
)

// AcceleratorLabels name the accelerator of a node, in this order: pacer's own, then those of the
// vendors' device plugins and of clouds.
var AcceleratorLabels = []string{"pacer.dev/accelerator", "nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator"}

// nodeOf returns a node, false if it has no devices. The error says why it cannot be used.
func (c *Cluster) nodeOf(n *core.Node) (live.Node, bool, error) {
	out := live.Node{Name: n.Name, Mode: modeOf(n)}
	devices := 0
	for _, r := range DeviceResources {
		if q := n.Status.Allocatable[r]; !q.IsZero() {
			devices = int(q.Value())
			break
		}
	}
	if devices < 1 {
		return out, false, nil
	}
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

func isDevice(name core.ResourceName) bool {
	for _, r := range DeviceResources {
		if r == name {
			return true
		}
	}
	return false
}
