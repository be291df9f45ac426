package kubernetes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
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

// faultRun is a real cluster under faults.
type faultRun struct {
	t      *testing.T
	c      *kubetest.Cluster
	rng    *rand.Rand
	seed   uint64
	policy string
	two    bool   // pacers; one of them has the lease
	node   string // that is lost, "" = none
	names  map[string]bool
	proxy  *kubetest.Proxy // of pacers
	down   string          // file that exists while the planner does not answer
	stops  int

	mu    sync.Mutex
	kills int
}

const faultNodes, faultDevices = 3, 4

// pacers runs one controller after the other until ctx is done, each in a process of its own that is killed after some of its
// writes.
func (r *faultRun) pacers(ctx context.Context, rng *rand.Rand) {
	exe, err := os.Executable()
	if err != nil {
		r.t.Error(err)
		return
	}
	for ctx.Err() == nil {
		after := 1 + rng.IntN(7)
		if r.two {
			after *= 3 // the other one waits for the lease
		}
		cmd := exec.CommandContext(ctx, exe)
		cmd.Env = append(os.Environ(), "PACER_TEST_KILL="+strconv.Itoa(after), "PACER_TEST_POLICY="+r.policy, "PACER_TEST_PLANNER="+r.down, "KUBECONFIG="+r.proxy.Kubeconfig)
		if r.two {
			cmd.Env = append(cmd.Env, "PACER_TEST_LEASE=true")
		}
		out, err := cmd.CombinedOutput()
		switch status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); {
		case ctx.Err() != nil:
		case ok && status.Signal() == syscall.SIGKILL:
			r.mu.Lock()
			r.kills++
			r.mu.Unlock()
		case err != nil: // such as an API server that is away for as long as it starts
			r.t.Logf("seed %d: %v: %s", r.seed, err, out)
		}
	}
}

// watch fails the test if released jobs were ever started on more devices than a node has, or a job was stopped while it ran
// with its target. It sees every version of every job until ctx is done, but for those of an API server that was killed.
func (r *faultRun) watch(ctx context.Context) {
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
func (r *faultRun) see(was, is *batch.Job) {
	record, err := live.ParseRecord(is.Annotations[kubernetes.RecordAnnotation])
	if err != nil {
		r.t.Errorf("seed %d: job %s: %v", r.seed, is.Name, err)
	}
	if was == nil || *was.Spec.Suspend || !*is.Spec.Suspend {
		return
	}
	r.stops++
	if record.Plan == record.RunPlan && record.Slots.String() == record.RunSlots.String() {
		r.t.Errorf("seed %d: job %s is stopped, though it runs with its target: %s", r.seed, is.Name, record)
	}
}

// check fails the test if jobs are started on more devices than a node has.
func (r *faultRun) check(all map[string]*batch.Job) {
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
			r.t.Errorf("seed %d: %d devices of node %s are granted: %s", r.seed, n, node, text)
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
func (r *faultRun) setNode(name string, ready bool) {
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
func (r *faultRun) fault(kind int) {
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
		if err := os.WriteFile(r.down, nil, 0o600); err != nil {
			r.t.Error(err)
		}
	case 6:
		_ = os.Remove(r.down)
	}
}

// submit submits a job that runs for a while.
func (r *faultRun) submit(i int) {
	name, devices := fmt.Sprintf("j%d", i), []int{1, 1, 2, 4, 8}[r.rng.IntN(5)]
	r.names[name] = true
	j := job(name, []string{"a", "b", "c"}[i%3], devices, 1000, "sleep", fmt.Sprintf("%.1f", 0.3+2*r.rng.Float64()))
	kubetest.Wait(r.t, "job "+name+" submitted", func() error {
		_, err := r.c.Client.BatchV1().Jobs("default").Create(r.t.Context(), j, meta.CreateOptions{})
		return err
	})
}

// TestFaults lets jobs arrive on a real cluster while pacers are killed after their writes, two with a lease in every other
// schedule, the API server and the controller of Jobs are killed, a node is lost and comes back, jobs are deleted, and the
// planner does not answer for a while. To pacers the API server is busy, fails, has conflicts, makes writes without an answer,
// and is late with events. No device is granted twice, no job is stopped needlessly, and every job completes. PACER_LIVE_SEED
// runs one seed, PACER_SOAK many.
func TestFaults(t *testing.T) {
	kills := 0
	for _, seed := range livetest.Seeds(t, 2, 50) {
		r := &faultRun{t: t, c: fresh(t, faultNodes), rng: rand.New(rand.NewPCG(seed, 6)), seed: seed, names: map[string]bool{}, two: seed%2 == 1,
			policy: livetest.Conforming[seed%uint64(len(livetest.Conforming))], down: filepath.Join(t.TempDir(), "down")}
		r.proxy = r.c.Proxy(t, rand.New(rand.NewPCG(seed, 9)))
		began := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 1 + seed%2 {
			all.Go(func() { r.pacers(ctx, rand.New(rand.NewPCG(seed, 7+i))) })
		}
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
		_ = os.Remove(r.down)
		kubetest.Wait(t, fmt.Sprintf("seed %d, policy %s", seed, r.policy), func() error {
			list, err := r.c.Client.BatchV1().Jobs("default").List(t.Context(), meta.ListOptions{})
			if err != nil {
				return err
			}
			here := map[string]bool{}
			for i := range list.Items {
				j := &list.Items[i]
				here[j.Name] = true
				if !ended(t, j) {
					return fmt.Errorf("job %s has not ended: %s, %+v", j.Name, j.Annotations[kubernetes.RecordAnnotation], j.Status)
				}
			}
			for name := range r.names {
				if !here[name] {
					t.Fatalf("seed %d: job %s is gone", seed, name)
				}
			}
			return nil
		})
		stop()
		all.Wait()
		t.Logf("seed %d, policy %s: %d jobs, %d stops, %d kills of pacer in %v; %s", seed, r.policy, len(r.names), r.stops, r.kills,
			time.Since(began).Round(time.Millisecond), r.proxy.Faults())
		if lacks := r.proxy.Lacks(); len(lacks) > 0 {
			t.Errorf("seed %d: no fault of the API server of kinds %q", seed, lacks)
		}
		if kills += r.kills; t.Failed() {
			return
		}
	}
	if kills == 0 {
		t.Error("pacer was never killed")
	}
}
