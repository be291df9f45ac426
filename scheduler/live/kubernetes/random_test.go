package kubernetes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		cmd.Env = append(os.Environ(), "PACER_TEST_KILL="+strconv.Itoa(after), "PACER_TEST_POLICY="+r.policy, "KUBECONFIG="+r.c.Kubeconfig)
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

// watch fails the test if released jobs were ever started on more devices than a node has.
func (r *faultRun) watch(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		list, err := r.c.Client.BatchV1().Jobs("default").List(ctx, meta.ListOptions{})
		if err != nil {
			continue
		}
		granted := map[string]int{}
		for i := range list.Items {
			j := &list.Items[i]
			record, err := live.ParseRecord(j.Annotations[kubernetes.RecordAnnotation])
			if err != nil {
				r.t.Errorf("seed %d: job %s: %v", r.seed, j.Name, err)
			}
			if *j.Spec.Suspend || hasEnded(j) {
				continue
			}
			for node, n := range record.RunSlots {
				if granted[node] += n; granted[node] > faultDevices {
					all := ""
					for k := range list.Items {
						if o := &list.Items[k]; !*o.Spec.Suspend && !hasEnded(o) {
							all += fmt.Sprintf("\n%s %s", o.Name, o.Annotations[kubernetes.RecordAnnotation])
						}
					}
					r.t.Errorf("seed %d: %d devices of node %s are granted: %s", r.seed, granted[node], node, all)
					return
				}
			}
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
// schedule, the API server and the controller of Jobs are killed, a node is lost and comes back, and jobs are deleted. No
// device is granted twice, and every job completes. PACER_LIVE_SEED runs one seed, PACER_SOAK many.
func TestFaults(t *testing.T) {
	kills := 0
	for _, seed := range livetest.Seeds(t, 2, 50) {
		r := &faultRun{t: t, c: fresh(t, faultNodes), rng: rand.New(rand.NewPCG(seed, 6)), seed: seed, names: map[string]bool{}, two: seed%2 == 1,
			policy: livetest.Conforming[seed%uint64(len(livetest.Conforming))]}
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
		t.Logf("seed %d, policy %s: %d jobs, %d kills of pacer in %v", seed, r.policy, len(r.names), r.kills, time.Since(began).Round(time.Millisecond))
		if kills += r.kills; t.Failed() {
			return
		}
	}
	if kills == 0 {
		t.Error("pacer was never killed")
	}
}
