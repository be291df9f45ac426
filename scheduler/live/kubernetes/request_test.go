package kubernetes

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

var testOptions = Options{
	Model: func(name string) (spec.Model, error) {
		if name != "a" {
			return spec.Model{}, fmt.Errorf("unknown model %q", name)
		}
		return spec.Model{Name: name}, nil
	},
	NodeType: func(name string, _ int) (spec.NodeGroup, error) {
		if name == "unknown" {
			return spec.NodeGroup{}, errors.New("is not in the catalog")
		}
		return spec.NodeGroup{Accelerator: spec.Accelerator{Name: name}}, nil
	},
}

func TestJobOf(t *testing.T) {
	c := &Cluster{Options: testOptions}
	j := kubetest.Job("x", 2, 4, map[string]string{"model": "a", "batch": "64", "seq": "2048", "steps": "1e3", "weight": "2",
		"guaranteed": "true", "done": "10", "accelerator": "A100", "plan": "dp=8"})
	j.Spec.Template.Spec.Containers[0].Resources.Requests = core.ResourceList{
		core.ResourceCPU: resource.MustParse("6"), core.ResourceMemory: resource.MustParse("10Gi")}
	got, err := c.jobOf(j)
	if err != nil {
		t.Fatal(err)
	}
	want := spec.Job{ID: "default/x", Model: spec.Model{Name: "a"}, GlobalBatch: 64, SeqLen: 2048, Steps: 1000, Weight: 2, Guaranteed: true, Tenant: "default",
		Devices: 8, Accelerator: "A100", Host: spec.Host{MilliCPUs: 1500, Bytes: 10 << 28}}
	want.Plan, _ = spec.ParsePlan("dp=8")
	if got.Spec != want || got.Done != 10 || got.Paused {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
}

func TestJobOfFaults(t *testing.T) {
	c := &Cluster{Options: testOptions}
	annotate := func(key, value string) func(*batch.Job) {
		return func(j *batch.Job) { j.Annotations["pacer.dev/"+key] = value }
	}
	for _, tc := range []struct {
		change func(*batch.Job)
		want   string
	}{
		{func(j *batch.Job) { delete(j.Annotations, ModelAnnotation) }, "annotation pacer.dev/model is missing"},
		{annotate("model", "b"), `annotation pacer.dev/model: unknown model "b"`},
		{annotate("steps", "many"), `annotation pacer.dev/steps: "many" is no number of at least 0`},
		{annotate("steps", "NaN"), `"NaN"`},
		{annotate("steps", "-1"), `"-1"`},
		{annotate("done", "1e999"), `"1e999"`},
		{annotate("batch", "0"), `annotation pacer.dev/batch: "0" is no whole number of at least 1`},
		{annotate("seq", "2.5"), `"2.5"`},
		{annotate("duration", "-3h"), `annotation pacer.dev/duration: "-3h" is no duration above 0`},
		{annotate("plan", "dp=x"), "annotation pacer.dev/plan: "},
		{annotate("paused", "maybe"), `annotation pacer.dev/paused: "maybe", want true or false`},
		{annotate("requested", `{"devices":-1}`), "annotation pacer.dev/requested: "},
		{annotate("requested", strings.Repeat("x", 1<<20)), "annotation pacer.dev/requested: "},
		{func(j *batch.Job) { j.Spec.CompletionMode = nil }, "completionMode is not Indexed"},
		{func(j *batch.Job) { *j.Spec.Completions, j.Spec.Parallelism = 3, new(int32) }, "parallelism is 0, want at least 1"},
		{func(j *batch.Job) { j.Spec.Completions = nil }, "completions and parallelism differ"},
		{func(j *batch.Job) { j.Spec.Template.Spec.Containers[0].Resources.Limits = nil }, "no container has a limit of nvidia.com/gpu"},
		{func(j *batch.Job) {
			p := &j.Spec.Template.Spec
			p.Containers = append(p.Containers, p.Containers[0])
		}, `containers "train" and "train" both request devices`},
		{func(j *batch.Job) {
			j.Spec.Template.Spec.Containers[0].Resources.Limits[DeviceResources[0]] = resource.MustParse("1E")
		}, "want 1 to 1024"},
	} {
		j := kubetest.Job("x", 1, 4, map[string]string{"model": "a", "steps": "10"})
		tc.change(j)
		if _, err := c.jobOf(j); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		} else if len(err.Error()) > 500 {
			t.Errorf("error of %d characters", len(err.Error()))
		}
	}
}

// TestUnknownWork: a job without steps and duration counts as one of a day.
func TestUnknownWork(t *testing.T) {
	c := &Cluster{Options: testOptions}
	j, err := c.jobOf(kubetest.Job("x", 1, 1, map[string]string{"model": "a"}))
	if err != nil || j.Spec.Duration != 24*time.Hour || j.Done != -1 {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestNodeOf(t *testing.T) {
	c := &Cluster{Options: testOptions}
	taint := func(key string, effect core.TaintEffect) func(*core.Node) {
		return func(n *core.Node) { n.Spec.Taints = []core.Taint{{Key: key, Effect: effect}} }
	}
	for _, tc := range []struct {
		name   string
		change func(*core.Node)
		mode   live.Mode
		has    bool
		err    string
	}{
		{"ready", func(*core.Node) {}, live.Up, true, ""},
		{"cordoned", func(n *core.Node) { n.Spec.Unschedulable = true }, live.Draining, true, ""},
		{"lost", func(n *core.Node) { n.Status = kubetest.NodeStatus(4, false) }, live.Down, true, ""},
		{"lost and cordoned", func(n *core.Node) { n.Status, n.Spec.Unschedulable = kubetest.NodeStatus(4, false), true }, live.Down, true, ""},
		{"no condition", func(n *core.Node) { n.Status.Conditions = nil }, live.Down, true, ""},
		{"unreachable", taint(core.TaintNodeUnreachable, core.TaintEffectNoExecute), live.Down, true, ""},
		{"taint of devices", taint("nvidia.com/gpu", core.TaintEffectNoSchedule), live.Up, true, ""},
		{"another taint", taint("team", core.TaintEffectNoSchedule), live.Draining, true, ""},
		{"a preference", taint("team", core.TaintEffectPreferNoSchedule), live.Up, true, ""},
		{"no devices", func(n *core.Node) { delete(n.Status.Allocatable, DeviceResources[0]) }, live.Up, false, ""},
		{"no label", func(n *core.Node) { delete(n.Labels, "nvidia.com/gpu.product") }, live.Up, true, "want the label pacer.dev/accelerator"},
		{"no hostname", func(n *core.Node) { delete(n.Labels, hostname) }, live.Up, true, "kubernetes.io/hostname"},
		{"unknown", func(n *core.Node) { n.Labels["pacer.dev/accelerator"] = "unknown" }, live.Up, true, `accelerator "unknown": is not in the catalog`},
	} {
		n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n", Labels: map[string]string{hostname: "n", "nvidia.com/gpu.product": "A100"}}, Status: kubetest.NodeStatus(4, true)}
		tc.change(n)
		got, has, err := c.nodeOf(n)
		if got.Mode != tc.mode || has != tc.has || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, %v, %v", tc.name, got.Mode, has, err)
		}
		if err == nil && has && (got.Type.Devices != 4 || got.Type.CPUs != 48 || got.Type.HostBytes != 400<<30) {
			t.Errorf("%s: %+v", tc.name, got.Type)
		}
	}
}

// TestLevel: nodes that differ a little in what the operating system leaves are equal.
func TestLevel(t *testing.T) {
	node := func(accelerator string, bytes float64) live.Node {
		return live.Node{Type: spec.NodeGroup{Devices: 4, CPUs: 48, HostBytes: bytes, Accelerator: spec.Accelerator{Name: accelerator}}}
	}
	nodes := []live.Node{node("x", 100), node("x", 99), node("x", 50), node("y", 98)}
	level(nodes)
	for i, want := range []float64{99, 99, 50, 98} {
		if got := nodes[i].Type.HostBytes; got != want {
			t.Errorf("node %d has %g bytes, want %g", i, got, want)
		}
	}
}

func TestPhaseOf(t *testing.T) {
	yes, no, one := true, false, int32(1)
	now := meta.Now()
	suspendedCondition := batch.JobStatus{StartTime: &now, Conditions: []batch.JobCondition{{Type: batch.JobSuspended, Status: core.ConditionTrue}}}
	for _, tc := range []struct {
		name    string
		suspend *bool
		status  batch.JobStatus
		held    held
		want    live.Phase
	}{
		{"submitted", &yes, batch.JobStatus{}, held{}, live.Held},
		{"suspended", &yes, suspendedCondition, held{}, live.Held},
		{"its pods end", &yes, suspendedCondition, held{pods: make([]*core.Pod, 1)}, live.Stopping},
		{"a pod without a node", &yes, suspendedCondition, held{unbound: 1}, live.Stopping},
		{"not yet seen by the controller of Jobs", &yes, batch.JobStatus{StartTime: &now}, held{}, live.Stopping},
		{"pods are counted still", &yes, batch.JobStatus{Active: 1}, held{}, live.Stopping},
		{"released before the controller of Jobs ever saw it", &no, batch.JobStatus{}, held{}, live.Releasing},
		{"released, and the controller of Jobs has not seen it", &no, suspendedCondition, held{}, live.Releasing},
		{"its status is still to come", &no, suspendedCondition, held{pods: make([]*core.Pod, 1)}, live.Releasing},
		{"released", &no, batch.JobStatus{StartTime: &now}, held{}, live.Released},
		{"never suspended", nil, batch.JobStatus{StartTime: &now}, held{}, live.Released},
		{"on a node", &no, batch.JobStatus{StartTime: &now}, held{pods: make([]*core.Pod, 1)}, live.Running},
		{"its last pod succeeded", &no, batch.JobStatus{StartTime: &now}, held{succeeded: true}, live.Stopping},
		{"one of its pods succeeded", &no, batch.JobStatus{StartTime: &now}, held{succeeded: true, pods: make([]*core.Pod, 1)}, live.Running},
		{"another pod of it is to start", &no, batch.JobStatus{StartTime: &now}, held{succeeded: true, unbound: 1}, live.Released},
		{"a pod succeeded while it was suspended", &yes, batch.JobStatus{StartTime: &now}, held{succeeded: true}, live.Stopping},
		{"that pod was not counted", &yes, suspendedCondition, held{succeeded: true}, live.Held},
		{"failed", &no, batch.JobStatus{Conditions: []batch.JobCondition{{Type: batch.JobFailed, Status: core.ConditionTrue}}}, held{pods: make([]*core.Pod, 1)}, live.Ended},
	} {
		j := &batch.Job{Spec: batch.JobSpec{Suspend: tc.suspend, Completions: &one}, Status: tc.status}
		if got := phaseOf(j, &tc.held); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
