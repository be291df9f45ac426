package kubernetes

import (
	"fmt"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// filled returns an engine that has read nodes with 8 devices, and jobs of 1 device. As many of
// the jobs run as have room.
func filled(tb testing.TB, nodes, jobs int) *Cluster {
	tb.Helper()
	add := func(i cache.Indexer, o any) {
		if err := i.Add(o); err != nil {
			tb.Fatal(err)
		}
	}
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	allNodes, allJobs, allPods := index(), index(), index()
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		add(allNodes, &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{hostname: name, "nvidia.com/gpu.product": "A100"}}, Status: kubetest.NodeStatus(8, true)})
	}
	yes := true
	for i := range jobs {
		j := kubetest.Job(fmt.Sprintf("j%d", i), 1, 1, map[string]string{"model": "a", "steps": "1000", "batch": "64"})
		j.UID, j.ResourceVersion = types.UID(j.Name), fmt.Sprint(i)
		if i < 8*nodes {
			node := fmt.Sprintf("n%d", i/8)
			slots := live.Slots{node: 1}
			j.Annotations[RecordAnnotation] = live.Record{Generation: 1, RunGeneration: 1, Plan: "dp=1", RunPlan: "dp=1", Slots: slots, RunSlots: slots}.String()
			*j.Spec.Suspend, j.Status.StartTime = false, &meta.Time{Time: time.Unix(1, 0)}
			p := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: j.Name + "-0", Namespace: j.Namespace, OwnerReferences: []meta.OwnerReference{{UID: j.UID, Controller: &yes}}}}
			p.Spec = j.Spec.Template.Spec
			p.Spec.NodeName = node
			p.Spec.Containers[0].Resources.Requests = p.Spec.Containers[0].Resources.Limits
			add(allPods, p)
		}
		add(allJobs, j)
	}
	return &Cluster{Options: testOptions, parsed: map[types.UID]*parsedJob{},
		nodes: corelisters.NewNodeLister(allNodes), pods: corelisters.NewPodLister(allPods), jobs: batchlisters.NewJobLister(allJobs)}
}

func BenchmarkObserve(b *testing.B) {
	for _, parsed := range []bool{false, true} {
		b.Run(fmt.Sprintf("nodes=1000/jobs=5000/parsed=%v", parsed), func(b *testing.B) {
			c := filled(b, 1000, 5000)
			for b.Loop() {
				if !parsed {
					clear(c.parsed)
				}
				s, err := c.Observe(b.Context())
				if err != nil || len(s.Jobs) != 5000 || len(s.Nodes) != 1000 {
					b.Fatalf("%d jobs, %d nodes, %v", len(s.Jobs), len(s.Nodes), err)
				}
			}
		})
	}
}

// TestUsage: devices of pods that pacer does not schedule, or no more, are usage; those of its own
// jobs are their slots.
func TestUsage(t *testing.T) {
	c := filled(t, 1, 4)
	list, err := c.pods.Pods("default").List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		switch p.Name {
		case "j0-0":
			p.OwnerReferences = nil // another's
		case "j2-0":
			p.Status.Phase = core.PodSucceeded
		case "j3-0": // of an earlier run
			p.Status.Phase, p.Annotations = core.PodSucceeded, map[string]string{SlotsAnnotation: "n9=1"}
		}
	}
	failed, err := c.jobs.Jobs("default").Get("j1")
	if err != nil {
		t.Fatal(err)
	}
	check := func(used, ending int, phases map[string]live.Phase) {
		t.Helper()
		s, err := c.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Nodes[0].UsedDevices; got != used {
			t.Errorf("%d devices are used by others, want %d", got, used)
		}
		if got := s.Nodes[0].EndingDevices; got != ending {
			t.Errorf("%d devices are held by runs that end, want %d", got, ending)
		}
		got := map[string]live.Phase{}
		for _, j := range s.Jobs {
			got[string(j.Spec.ID)] = j.Phase
			if j.Phase == live.Running && j.Slots.String() != "n0=1" {
				t.Errorf("job %s holds %q", j.Spec.ID, j.Slots)
			}
			if j.Phase == live.Stopping && j.Slots != nil {
				t.Errorf("job %s, whose pod has ended, holds %q, want what it was started on", j.Spec.ID, j.Slots)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(phases) {
			t.Errorf("phases %v, want %v", got, phases)
		}
	}
	check(1, 0, map[string]live.Phase{"default/j0": live.Released, "default/j1": live.Running, "default/j2": live.Stopping, "default/j3": live.Released})
	failed.Status.Conditions = []batch.JobCondition{{Type: batch.JobFailed, Status: core.ConditionTrue}}
	check(1, 1, map[string]live.Phase{"default/j0": live.Released, "default/j2": live.Stopping, "default/j3": live.Released})
}
