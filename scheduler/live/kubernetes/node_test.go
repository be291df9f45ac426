package kubernetes

import (
	"fmt"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// show shows pacer node n0 with other devices and labels.
func (s *skewed) show(capacity, allocatable int, accelerator string) {
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n0", Labels: map[string]string{hostname: "n0", "nvidia.com/gpu.product": accelerator}}}
	n.Status = kubetest.NodeStatus(4, true)
	n.Status.Capacity, n.Status.Allocatable = n.Status.Capacity.DeepCopy(), n.Status.Allocatable.DeepCopy()
	n.Status.Capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(capacity), resource.DecimalSI)
	n.Status.Allocatable["nvidia.com/gpu"] = *resource.NewQuantity(int64(allocatable), resource.DecimalSI)
	s.set(s.seenNodes, n)
}

// TestDevicesAway: after a restart of the kubelet a node has no devices until the device plugin has registered again; while
// the plugin restarts all devices are unhealthy; and the label of the type may be away. Jobs on the node run on, and others
// do not start there.
func TestDevicesAway(t *testing.T) {
	for name, away := range map[string]func(*skewed){
		"kubelet": func(s *skewed) { s.show(0, 0, "A100") },
		"plugin":  func(s *skewed) { s.show(4, 0, "A100") },
		"label":   func(s *skewed) { s.show(4, 4, "") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSkewed(t, "a", "b")
			s.expected = "it keeps its jobs and gets no others"
			s.start("a", live.Slots{"n0": 2})
			s.see("b")
			away(s)
			for range 3 {
				s.tick()
			}
			s.runs("a", live.Slots{"n0": 2})
			s.targets["b"] = live.Slots{"n0": 2}
			s.show(4, 4, "A100")
			s.tick()
			s.runs("a", live.Slots{"n0": 2})
			s.runs("b", live.Slots{"n0": 2})
		})
	}
}

// TestUnhealthyDevices: unhealthy devices are used, as far as no pod holds them, and change neither the type of the node nor
// the jobs on it.
func TestUnhealthyDevices(t *testing.T) {
	s := newSkewed(t, "a")
	s.start("a", live.Slots{"n0": 2})
	for healthy, want := range map[int]int{4: 0, 3: 1, 2: 2, 1: 2} {
		s.show(4, healthy, "A100")
		state, err := s.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range state.Nodes {
			if n.Name == "n0" && (n.UsedDevices != want || n.Type.Devices != 4 || n.Mode != live.Up) {
				t.Errorf("%d healthy: %s with %d devices, %d used, want 4, %d", healthy, n.Mode, n.Type.Devices, n.UsedDevices, want)
			}
		}
		s.tick()
		s.runs("a", live.Slots{"n0": 2})
	}
}

// TestPodRequests: a pod holds what kube-scheduler counts: sidecars, init containers that need more, overhead, and what the
// pod requests as a whole.
func TestPodRequests(t *testing.T) {
	always := core.ContainerRestartPolicyAlways
	c := func(cpus string, devices int64, restart *core.ContainerRestartPolicy) core.Container {
		return core.Container{RestartPolicy: restart, Resources: core.ResourceRequirements{Requests: core.ResourceList{
			core.ResourceCPU: resource.MustParse(cpus), "nvidia.com/gpu": *resource.NewQuantity(devices, resource.DecimalSI)}}}
	}
	for i, tc := range []struct {
		spec core.PodSpec
		want string
	}{
		{core.PodSpec{Containers: []core.Container{c("1", 1, nil), c("2", 0, nil)}}, "1 device, 3000"},
		{core.PodSpec{InitContainers: []core.Container{c("1", 0, &always)}, Containers: []core.Container{c("2", 1, nil)}}, "1 device, 3000"},
		{core.PodSpec{InitContainers: []core.Container{c("1", 4, nil)}, Containers: []core.Container{c("2", 1, nil)}}, "4 devices, 2000"},
		{core.PodSpec{InitContainers: []core.Container{c("1", 0, &always), c("5", 0, nil)}, Containers: []core.Container{c("2", 1, nil)}}, "1 device, 6000"},
		{core.PodSpec{Overhead: core.ResourceList{core.ResourceCPU: resource.MustParse("250m")}, Containers: []core.Container{c("2", 2, nil)}}, "2 devices, 2250"},
		{core.PodSpec{Resources: &core.ResourceRequirements{Requests: core.ResourceList{core.ResourceCPU: resource.MustParse("7")}}, Containers: []core.Container{c("2", 2, nil)}}, "2 devices, 7000"},
	} {
		p, err := strip(&core.Pod{Spec: tc.spec})
		if err != nil {
			t.Fatal(err)
		}
		devices, host := podRequests(p.(*core.Pod))
		if got := fmt.Sprintf("%s, %d", spec.Count(devices, "device"), host.MilliCPUs); got != tc.want {
			t.Errorf("pod %d: %s, want %s", i, got, tc.want)
		}
	}
}

// TestInitContainers: an init container that checks the devices gets as many as the job; a sidecar with devices is refused.
func TestInitContainers(t *testing.T) {
	for was, want := range map[int64]int64{0: 0, 1: 1, 2: 3, 4: 3} {
		s := newSkewed(t, "a")
		j := s.jobs["a"].DeepCopy()
		q := *resource.NewQuantity(was, resource.DecimalSI)
		j.Spec.Template.Spec.InitContainers = []core.Container{{Name: "check", Resources: core.ResourceRequirements{Limits: core.ResourceList{"nvidia.com/gpu": q}, Requests: core.ResourceList{"nvidia.com/gpu": q}}}}
		s.put(j)
		s.see("a")
		s.targets["a"] = live.Slots{"n0": 3}
		s.tick()
		got := s.jobs["a"].Spec.Template.Spec.InitContainers[0].Resources.Requests["nvidia.com/gpu"]
		if got.Value() != want || *s.jobs["a"].Spec.Suspend {
			t.Errorf("an init container with %d devices of a job with 2 gets %d of 3, want %d", was, got.Value(), want)
		}
		always := core.ContainerRestartPolicyAlways
		j.Spec.Template.Spec.InitContainers[0].RestartPolicy = &always
		if _, err := s.jobOf(j); (err != nil) != (was > 0) {
			t.Errorf("a sidecar with %d devices: %v", was, err)
		}
	}
}
