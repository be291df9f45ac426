package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// skewed is a server with a controller of Jobs. Pacer sees its jobs and pods at other moments: the test says when. It is the
// policy, too, which grants jobs the slots of a map.
type skewed struct {
	*Cluster
	t          *testing.T
	jobs       map[string]*batch.Job
	pods       map[string]*core.Pod
	seenJobs   cache.Indexer
	seenPods   cache.Indexer
	seenNodes  cache.Indexer
	expected   string // in warnings that are no error, "" = none
	version    int
	targets    map[string]live.Slots
	controller *live.Controller
	now        time.Time
}

// newSkewed returns a server with nodes n0 and n1 of 4 devices, and submitted jobs.
func newSkewed(t *testing.T, names ...string) *skewed {
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	s := &skewed{t: t, jobs: map[string]*batch.Job{}, pods: map[string]*core.Pod{}, seenJobs: index(), seenPods: index(),
		targets: map[string]live.Slots{}, now: time.Unix(1000, 0)}
	s.seenNodes = index()
	for _, name := range []string{"n0", "n1"} {
		s.set(s.seenNodes, &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{hostname: name, "nvidia.com/gpu.product": "A100"}}, Status: kubetest.NodeStatus(4, true)})
	}
	s.Cluster = &Cluster{Options: testOptions, parsed: map[types.UID]*parsedJob{}, placing: map[types.UID]int{},
		nodes: corelisters.NewNodeLister(s.seenNodes), pods: corelisters.NewPodLister(s.seenPods), jobs: batchlisters.NewJobLister(s.seenJobs)}
	for _, name := range names {
		j := kubetest.Job(name, 1, 2, map[string]string{"model": "a", "steps": "1000", "batch": "64"})
		j.UID = types.UID(name)
		s.put(j)
	}
	s.see(names...)
	s.restart()
	return s
}

func (s *skewed) set(i cache.Indexer, o any) {
	if err := i.Add(o); err != nil {
		s.t.Fatal(err)
	}
}

// put stores a job under a new version.
func (s *skewed) put(j *batch.Job) *batch.Job {
	s.version++
	j.ResourceVersion = fmt.Sprint(s.version)
	s.jobs[j.Name] = j
	return j
}

// see shows pacer the present state of some jobs.
func (s *skewed) see(jobs ...string) {
	for _, name := range jobs {
		s.set(s.seenJobs, s.jobs[name])
	}
}

// seePods shows pacer the present pods.
func (s *skewed) seePods() {
	var now []any
	for _, p := range s.pods {
		now = append(now, p.DeepCopy())
	}
	if err := s.seenPods.Replace(now, ""); err != nil {
		s.t.Fatal(err)
	}
}

// restart starts another controller, which knows nothing.
func (s *skewed) restart() {
	var err error
	s.controller, err = live.New(live.Options{
		Cluster: s, Policy: func(spec.Cluster) (scheduler.Policy, error) { return s, nil }, Epoch: time.Unix(0, 0), StaleAfter: time.Hour,
		Now: func() time.Time { return s.now },
		OnEvent: func(e live.Event) {
			if e.Warning && (s.expected == "" || !strings.Contains(e.Message, s.expected)) {
				s.t.Errorf("%s %s: %s", e.Object, e.Kind, e.Message)
			}
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// Decide implements scheduler.Policy.
func (s *skewed) Decide(_ context.Context, now *scheduler.Snapshot) (d scheduler.Decision, err error) {
	for _, j := range now.Jobs() {
		slots := s.targets[strings.TrimPrefix(string(j.Job.ID), "default/")]
		if len(slots) == 0 {
			continue
		}
		g := &scheduler.Grant{Job: j.Job.ID, Plan: spec.Plan{DP: slots.Devices()}}
		var counts []int
		for _, name := range slices.Sorted(maps.Keys(slots)) {
			g.Slots = append(g.Slots, scheduler.Slot{Node: int(name[1] - '0'), Devices: slots[name]})
			counts = append(counts, slots[name])
		}
		g.Shape = spec.NewShape(counts...)
		d.Grants = append(d.Grants, g)
	}
	d.Wake = now.Now + time.Second
	return d, nil
}

// tick lets pacer act once, a second later.
func (s *skewed) tick() {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	if _, err := s.controller.Tick(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// write changes a job as a patch says, if it is as observed.
func (s *skewed) write(j *live.Job, p object) error {
	was := s.jobs[j.Ref.(*batch.Job).Name]
	if was.ResourceVersion != j.Version {
		return live.ErrConflict
	}
	before, err := json.Marshal(was)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(p)
	if err != nil {
		return err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, &batch.Job{})
	if err != nil {
		return err
	}
	now := &batch.Job{}
	if err := json.Unmarshal(after, now); err != nil {
		return err
	}
	s.put(now)
	j.Version, j.Ref = now.ResourceVersion, now
	return nil
}

// Record implements live.Cluster.
func (s *skewed) Record(_ context.Context, j *live.Job, r live.Record) error {
	p, err := recorded(j, r)
	if err != nil {
		return err
	}
	return s.write(j, object{"metadata": object{"annotations": p}})
}

// Start implements live.Cluster. It checks that the devices are free.
func (s *skewed) Start(_ context.Context, j *live.Job, r live.Record) error {
	for node, n := range r.RunSlots {
		for _, p := range s.pods {
			if devices, _ := podRequests(p); p.Spec.NodeName == node && p.Status.Phase == core.PodRunning {
				n += devices
			}
		}
		if n > 4 {
			s.t.Errorf("job %s is started on %s, where %d of 4 devices are in use then", j.Spec.ID, r.RunSlots, n)
		}
	}
	p, err := s.starting(j, r)
	if err != nil {
		return err
	}
	return s.write(j, p)
}

// Stop implements live.Cluster.
func (s *skewed) Stop(_ context.Context, j *live.Job) error {
	return s.write(j, object{"spec": object{"suspend": true}})
}

// Notify implements live.Notifier.
func (s *skewed) Notify(live.Event) {}

// control is a step of the controller of Jobs, of the scheduler and of the kubelets: a released job gets its pods on its
// node, those of a suspended job are deleted.
func (s *skewed) control(name string) {
	j := s.jobs[name].DeepCopy()
	one := int32(1)
	suspended := core.ConditionFalse
	if *j.Spec.Suspend {
		suspended = core.ConditionTrue
		j.Status.StartTime, j.Status.Active, j.Status.Terminating = nil, 0, &one
	} else {
		began := meta.NewTime(s.now)
		j.Status.StartTime, j.Status.Active = &began, 1
		yes := true
		p := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprint(name, "-", s.version), Namespace: j.Namespace, Annotations: j.Spec.Template.Annotations,
			OwnerReferences: []meta.OwnerReference{{UID: j.UID, Controller: &yes}}}, Spec: *j.Spec.Template.Spec.DeepCopy()}
		p.Spec.NodeName, p.Status.Phase = p.Spec.NodeSelector[hostname], core.PodRunning
		s.pods[name] = p
	}
	j.Status.Conditions = []batch.JobCondition{{Type: batch.JobSuspended, Status: suspended}}
	s.put(j)
}

// gone ends the deleted pods of a job.
func (s *skewed) gone(name string) {
	j := s.jobs[name].DeepCopy()
	none := int32(0)
	j.Status.Terminating = &none
	delete(s.pods, name)
	s.put(j)
}

// runs fails the test unless a job runs with its target.
func (s *skewed) runs(name string, on live.Slots) {
	s.t.Helper()
	r, err := live.ParseRecord(s.jobs[name].Annotations[RecordAnnotation])
	if err != nil || *s.jobs[name].Spec.Suspend || r.RunSlots.String() != on.String() || r.Slots.String() != on.String() {
		s.t.Errorf("job %s: suspended %v, %v, %v; want that it runs on %s", name, *s.jobs[name].Spec.Suspend, r, err, on)
	}
	if r.Restarts+r.Failures > 0 {
		s.t.Errorf("job %s: %d restarts, %d failures", name, r.Restarts, r.Failures)
	}
}

// start lets a job run on a node, as pacer sees it.
func (s *skewed) start(name string, on live.Slots) {
	s.t.Helper()
	s.targets[name] = on
	s.tick()
	s.control(name)
	s.see(name)
	s.seePods()
	s.tick()
	s.runs(name, on)
}

// TestPodsBeforeJob: pods are seen, and not yet that their job was started. They are the job's.
func TestPodsBeforeJob(t *testing.T) {
	s := newSkewed(t, "a", "b")
	s.targets["a"] = live.Slots{"n0": 2}
	s.tick()
	s.control("a")
	s.seePods()
	s.targets["b"] = live.Slots{"n0": 2}
	s.tick()
	s.see("a", "b")
	s.tick()
	s.runs("a", live.Slots{"n0": 2})
	s.runs("b", live.Slots{"n0": 2})
}

// TestPodsBeforeJobOfNewController: the same, for a controller that knows nothing.
func TestPodsBeforeJobOfNewController(t *testing.T) {
	s := newSkewed(t, "a", "b")
	s.targets["a"] = live.Slots{"n0": 4}
	s.tick()
	s.control("a")
	s.seePods()
	s.restart()
	s.tick() // conflicts, if it decides to start a
	s.see("a")
	s.tick()
	s.runs("a", live.Slots{"n0": 4})
}

// TestJobBeforePods: a job is seen suspended, and its pods were never seen. They hold their devices until the controller of
// Jobs counts them no more.
func TestJobBeforePods(t *testing.T) {
	s := newSkewed(t, "a", "b")
	s.targets["a"] = live.Slots{"n0": 4}
	s.tick()
	s.control("a")
	s.see("a")
	delete(s.targets, "a")
	s.targets["b"] = live.Slots{"n0": 4}
	s.tick()
	if !*s.jobs["a"].Spec.Suspend {
		t.Fatal("job a is not stopped")
	}
	s.control("a")
	s.see("a", "b")
	s.tick()
	if !*s.jobs["b"].Spec.Suspend {
		t.Error("job b is started before the pods of job a are gone")
	}
	s.gone("a")
	s.see("a")
	s.tick()
	s.runs("b", live.Slots{"n0": 4})
}

// TestOldPods: pods of the last run are seen after the next one was started elsewhere. No target loses their devices.
func TestOldPods(t *testing.T) {
	s := newSkewed(t, "a", "b")
	s.targets["a"] = live.Slots{"n0": 4}
	s.tick()
	s.control("a")
	s.see("a")
	old := s.pods["a"]
	s.targets["a"], s.targets["b"] = live.Slots{"n1": 4}, live.Slots{"n0": 2}
	s.tick()
	s.control("a")
	s.gone("a")
	s.see("a", "b")
	s.tick() // both are started
	s.control("a")
	s.control("b")
	s.see("a", "b")
	s.set(s.seenPods, old) // late
	for range 3 {
		s.tick()
	}
	s.seePods()
	s.tick()
	for name, on := range map[string]live.Slots{"a": {"n1": 4}, "b": {"n0": 2}} {
		if r, err := live.ParseRecord(s.jobs[name].Annotations[RecordAnnotation]); err != nil || r.RunSlots.String() != on.String() || *s.jobs[name].Spec.Suspend {
			t.Errorf("job %s: %v, %v", name, r, err)
		}
	}
}

// TestFailedWhileMoved: a job fails on devices that another has as its target. That target stays, and waits for the pods.
func TestFailedWhileMoved(t *testing.T) {
	s := newSkewed(t, "a", "b")
	s.start("a", live.Slots{"n0": 4})
	s.targets = map[string]live.Slots{"b": {"n0": 4}}
	s.tick()
	failed := s.jobs["a"].DeepCopy()
	failed.Status.Conditions = append(failed.Status.Conditions, batch.JobCondition{Type: batch.JobFailureTarget, Status: core.ConditionTrue})
	s.put(failed)
	s.see("a", "b")
	s.tick()
	if r, err := live.ParseRecord(s.jobs["b"].Annotations[RecordAnnotation]); err != nil || r.Slots.String() != "n0=4" || r.RunPlan != "" {
		t.Errorf("job b: %v, %v", r, err)
	}
	s.gone("a")
	s.seePods()
	s.tick()
	s.runs("b", live.Slots{"n0": 4})
}
