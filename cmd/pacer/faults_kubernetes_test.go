package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// kubeFaults is a real Kubernetes under faults.
type kubeFaults struct {
	t       *testing.T
	c       *kubetest.Cluster
	rng     *rand.Rand
	policy  string
	node    string // that is lost, "" = none
	names   map[string]bool
	planner *faultPlanner
	stops   int
}

const faultNodes, faultDevices = 3, 4

// watch fails the test if released jobs were ever started on more devices than a node has, or a job was stopped while it ran
// with its target. It sees every version of every job until ctx is done, but for those of an API server that was killed.
func (r *kubeFaults) watch(ctx context.Context) {
	client := r.c.Client.BatchV1().Jobs("default")
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		list, err := client.List(ctx, meta.ListOptions{})
		if err != nil {
			continue
		}
		all := map[string]*batch.Job{}
		for i := range list.Items {
			all[list.Items[i].Name] = &list.Items[i]
		}
		r.check(all)
		w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: client.Watch})
		if err != nil {
			r.t.Error(err)
			return
		}
		for e := range w.ResultChan() {
			j, ok := e.Object.(*batch.Job)
			if !ok {
				break // the new API server does not have the old versions
			}
			r.see(all[j.Name], j)
			if all[j.Name] = j; e.Type == apiwatch.Deleted {
				delete(all, j.Name)
			}
			r.check(all)
		}
		w.Stop()
	}
}

// see fails the test if a job, between two versions of it, was stopped while it ran with its target.
func (r *kubeFaults) see(was, is *batch.Job) {
	record, err := live.ParseRecord(is.Annotations[kubernetes.RecordAnnotation])
	if err != nil {
		r.t.Errorf("job %s: %v", is.Name, err)
	}
	if was == nil || *was.Spec.Suspend || !*is.Spec.Suspend {
		return
	}
	r.stops++
	if record.Plan == record.RunPlan && record.Slots.String() == record.RunSlots.String() {
		r.t.Errorf("job %s is stopped, though it runs with its target: %s", is.Name, record)
	}
}

// check fails the test if jobs are started on more devices than a node has.
func (r *kubeFaults) check(all map[string]*batch.Job) {
	granted, text := map[string]int{}, ""
	for _, j := range all {
		if *j.Spec.Suspend || hasEnded(j) {
			continue
		}
		text += fmt.Sprintf("\n%s %s", j.Name, j.Annotations[kubernetes.RecordAnnotation])
		record, err := live.ParseRecord(j.Annotations[kubernetes.RecordAnnotation])
		if err != nil {
			continue // said before
		}
		for node, n := range record.RunSlots {
			granted[node] += n
		}
	}
	for node, n := range granted {
		if n > faultDevices {
			r.t.Errorf("%d devices of node %s are granted: %s", n, node, text)
		}
	}
}

// hasEnded reports whether a job has ended, or is about to.
func hasEnded(j *batch.Job) bool {
	for _, c := range j.Status.Conditions {
		if c.Status == core.ConditionTrue && c.Type != batch.JobSuspended {
			return true
		}
	}
	return j.DeletionTimestamp != nil
}

// setNode makes a node ready, or lost.
func (r *kubeFaults) setNode(name string, ready bool) {
	kubetest.Wait(r.t, "node "+name, func() error {
		n, err := r.c.Client.CoreV1().Nodes().Get(r.t.Context(), name, meta.GetOptions{})
		if err != nil {
			return err
		}
		n.Status = kubetest.NodeStatus(faultDevices, ready)
		_, err = r.c.Client.CoreV1().Nodes().UpdateStatus(r.t.Context(), n, meta.UpdateOptions{})
		return err
	})
}

// fault changes something that controllers do not do.
func (r *kubeFaults) fault(kind int) {
	switch kind {
	case 0:
		r.c.Kill(r.t, "kube-apiserver")
	case 1:
		r.c.Kill(r.t, "controllers")
	case 2, 3:
		if r.node == "" {
			r.node = fmt.Sprintf("n%d", r.rng.IntN(faultNodes))
			r.setNode(r.node, false)
		} else {
			r.setNode(r.node, true)
			r.node = ""
		}
	case 4:
		for name := range r.names {
			kubetest.Wait(r.t, "job "+name+" deleted", func() error {
				background := meta.DeletePropagationBackground
				return r.c.Client.BatchV1().Jobs("default").Delete(r.t.Context(), name, meta.DeleteOptions{PropagationPolicy: &background})
			})
			delete(r.names, name)
			break
		}
	case 5:
		r.planner.down(r.rng.IntN(2) == 0)
	case 6:
		r.planner.up()
	}
}

// submit submits a job that runs for a while.
func (r *kubeFaults) submit(i int) {
	name, devices := fmt.Sprintf("j%d", i), []int{1, 1, 2, 4, 8}[r.rng.IntN(5)]
	r.names[name] = true
	pods := (devices + 3) / 4
	j := kubetest.Job(name, pods, devices/pods, map[string]string{"model": "GPT2-small", "batch": "8", "steps": fmt.Sprint(1000 * (1 + r.rng.IntN(100)))},
		"sleep", fmt.Sprintf("%.1f", 0.3+2*r.rng.Float64()))
	kubetest.Wait(r.t, "job "+name+" submitted", func() error {
		_, err := r.c.Client.BatchV1().Jobs("default").Create(r.t.Context(), j, meta.CreateOptions{})
		return err
	})
}

// left returns an error while a job has not ended, and fails the test if one is gone or failed.
func (r *kubeFaults) left() error {
	list, err := r.c.Client.BatchV1().Jobs("default").List(r.t.Context(), meta.ListOptions{})
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for i := range list.Items {
		j := &list.Items[i]
		here[j.Name] = true
		complete := false
		for _, c := range j.Status.Conditions {
			if c.Type == batch.JobFailed && c.Status == core.ConditionTrue {
				r.t.Fatalf("job %s failed: %s", j.Name, c.Message)
			}
			complete = complete || c.Type == batch.JobComplete && c.Status == core.ConditionTrue
		}
		if !complete && err == nil {
			err = fmt.Errorf("job %s has not ended: %s, %+v", j.Name, j.Annotations[kubernetes.RecordAnnotation], j.Status)
		}
	}
	for name := range r.names {
		if !here[name] {
			r.t.Fatalf("job %s is gone", name)
		}
	}
	return err
}

// TestE2EKubernetesFaults lets jobs arrive on a real cluster while pacers are killed after their writes, two that wait for one
// lease in every other schedule, the API server, the controller of Jobs and pacer serve are killed or hang, a node is lost and
// comes back, and a job is deleted. To pacers the API server is busy, fails, has conflicts, makes writes without an answer,
// and is late with events. No device is granted twice, no job is stopped needlessly, and every job completes. PACER_LIVE_SEED
// runs some seeds, PACER_SOAK many.
func TestE2EKubernetesFaults(t *testing.T) {
	pacer := pacerBinary(t)
	for _, seed := range livetest.Seeds(t, 2, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { kubernetesFaults(t, pacer, seed) })
		if t.Failed() && !livetest.Soak() {
			return
		}
	}
}

func kubernetesFaults(t *testing.T, pacer string, seed uint64) {
	r := &kubeFaults{t: t, c: kubetest.Shared(t), rng: rand.New(rand.NewPCG(seed, 6)), names: map[string]bool{},
		policy: faultPolicies[seed%uint64(len(faultPolicies))], planner: startFaultPlanner(t, pacer)}
	r.c.Reset(t)
	r.c.AddNodes(t, faultNodes, faultDevices)
	proxy := r.c.Proxy(t, rand.New(rand.NewPCG(seed, 9)))
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	pacers := r.planner.startPacers(ctx, &all, "kubernetes", r.policy, seed, func(p *faultPacer) {
		p.args = append(p.args, "--lease-duration", "2s", "--kubeconfig", proxy.Front(t, p.written))
	})
	all.Go(func() { r.watch(ctx) })
	faults := r.rng.Perm(8)
	for i := range 12 {
		r.submit(i)
		time.Sleep(time.Duration(r.rng.IntN(600)) * time.Millisecond)
		if i >= 2 && i-2 < len(faults) {
			r.fault(faults[i-2])
		}
	}
	if r.node != "" {
		r.setNode(r.node, true)
	}
	r.planner.up()
	defer pacers.show(t)
	kubetest.Wait(t, "policy "+r.policy, r.left)
	stop()
	all.Wait()
	kills, ends := pacers.ends()
	t.Logf("policy %s, %d pacers: %d jobs, %d stops, %s, in %v; %s", r.policy, len(pacers),
		len(r.names), r.stops, ends, time.Since(began).Round(time.Millisecond), proxy.Faults())
	if lacks := proxy.Lacks(); len(lacks) > 0 {
		t.Errorf("no fault of the API server of kinds %q", lacks)
	}
	if kills == 0 {
		t.Error("pacer was never killed")
	}
}
