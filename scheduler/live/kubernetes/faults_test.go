package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// TestKill kills the controller after each of its writes in turn: the next one comes to the same
// state, and both together write as often as one that is not killed.
func TestKill(t *testing.T) {
	const policy = "optimus" // makes room by resizing
	scenario := func(after int) (total int, state map[string]string, killed bool) {
		c := fresh(t, 2)
		c.Submit(t, job("first", "a", 8, 2000))
		total, _ = child(t, c, policy, 0)
		for i, model := range []string{"b", "c"} {
			c.Submit(t, job(model, model, 2, 3000*(i+1)))
		}
		n, killed := child(t, c, policy, after)
		total += n
		if killed {
			n, _ = child(t, c, policy, 0)
			total += n
		}
		state = map[string]string{}
		for name, j := range jobs(t, c) {
			r, err := live.ParseRecord(j.Annotations[kubernetes.RecordAnnotation])
			if err != nil {
				t.Fatal(err)
			}
			if r.Plan != "" {
				kubetest.Wait(t, fmt.Sprintf("killed after write %d", after), func() error { return runsAsRecorded(t, c, jobs(t, c)[name]) })
			} else if !*j.Spec.Suspend {
				t.Errorf("killed after write %d: job %s has no target and is not suspended", after, name)
			}
			state[name] = r.Plan + " on " + r.Slots.String()
		}
		return total, state, killed
	}
	want, wantState, _ := scenario(0)
	if want < 6 || len(wantState) != 3 {
		t.Fatalf("%d writes to the state %v", want, wantState)
	}
	kills := 0
	for after := 1; ; after++ {
		got, state, killed := scenario(after)
		if !killed {
			break // it has fewer writes
		}
		kills++
		if got != want || fmt.Sprint(state) != fmt.Sprint(wantState) {
			t.Errorf("killed after write %d: %d writes to the state %v, want %d writes to %v", after, got, state, want, wantState)
		}
		if testing.Short() && after == 2 {
			break
		}
	}
	t.Logf("%d kills, %d writes each, state %v", kills, want, wantState)
}

// TestNodes: a cordoned node keeps its job and gets no other; a lost node loses it to another.
func TestNodes(t *testing.T) {
	c := fresh(t, 2)
	startPacer(t, c, "fifo")
	c.Submit(t, job("a", "a", 4, 1000))
	kubetest.Wait(t, "a", func() error { return runsAsRecorded(t, c, jobs(t, c)["a"]) })
	node := podsOf(t, c, "a")[0].Spec.NodeName
	setNode := func(change func(*core.Node)) {
		t.Helper()
		kubetest.Wait(t, "node", func() error {
			n, err := c.Client.CoreV1().Nodes().Get(t.Context(), node, meta.GetOptions{})
			if err != nil {
				return err
			}
			change(n)
			if n, err = c.Client.CoreV1().Nodes().Update(t.Context(), n, meta.UpdateOptions{}); err != nil {
				return err
			}
			change(n)
			_, err = c.Client.CoreV1().Nodes().UpdateStatus(t.Context(), n, meta.UpdateOptions{})
			return err
		})
	}
	setNode(func(n *core.Node) { n.Spec.Unschedulable = true })
	c.Submit(t, job("b", "b", 2, 1000))
	c.Submit(t, job("c", "c", 4, 1000)) // has no room
	kubetest.Wait(t, "b", func() error { return runsAsRecorded(t, c, jobs(t, c)["b"]) })
	if got := podsOf(t, c, "b")[0].Spec.NodeName; got == node {
		t.Errorf("job b is on the cordoned node %s", node)
	}
	all := jobs(t, c)
	if err := runsAsRecorded(t, c, all["a"]); err != nil {
		t.Errorf("after the cordon: %v", err)
	}
	if !*all["c"].Spec.Suspend {
		t.Error("job c was started without room")
	}

	deleteJob(t, c, "b")
	deleteJob(t, c, "c")
	setNode(func(n *core.Node) { n.Spec.Unschedulable, n.Status = false, kubetest.NodeStatus(4, false) })
	kubetest.Wait(t, "a on the other node", func() error {
		if err := runsAsRecorded(t, c, jobs(t, c)["a"]); err != nil {
			return err
		}
		for _, p := range podsOf(t, c, "a") {
			if p.Spec.NodeName == node {
				return errors.New("still on the lost node")
			}
		}
		return nil
	})
}

func deleteJob(t *testing.T, c *kubetest.Cluster, name string) {
	t.Helper()
	background := meta.DeletePropagationBackground
	if err := c.Client.BatchV1().Jobs("default").Delete(t.Context(), name, meta.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
}

// TestRestarts kills the API server, and deletes a job, while jobs start.
func TestRestarts(t *testing.T) {
	c := fresh(t, 3)
	startPacer(t, c, "fifo")
	for i := range 6 {
		c.Submit(t, job(fmt.Sprintf("j%d", i), "a", 2, 1000+i))
	}
	c.Kill(t, "kube-apiserver")
	kubetest.Wait(t, "a job deleted", func() error {
		background := meta.DeletePropagationBackground
		return c.Client.BatchV1().Jobs("default").Delete(t.Context(), "j3", meta.DeleteOptions{PropagationPolicy: &background})
	})
	kubetest.Wait(t, "jobs", func() error {
		list, err := c.Client.BatchV1().Jobs("default").List(t.Context(), meta.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != 5 {
			return fmt.Errorf("%d jobs", len(list.Items))
		}
		for i := range list.Items {
			if err := runsAsRecorded(t, c, &list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestTwoPacers: without a lease, of two controllers that write at the same time each write of one
// makes the other look again; no device is granted twice.
func TestTwoPacers(t *testing.T) {
	c := fresh(t, 2)
	startPacer(t, c, "fifo")
	startPacer(t, c, "fifo")
	for i := range 10 {
		c.Submit(t, job(fmt.Sprintf("j%d", i), "a", 1, 1000))
	}
	kubetest.Wait(t, "full", func() error {
		devices := 0
		var wrong error
		for _, j := range jobs(t, c) {
			if *j.Spec.Suspend {
				continue
			}
			wrong = errors.Join(wrong, runsAsRecorded(t, c, j))
			for _, p := range podsOf(t, c, j.Name) {
				n := p.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
				devices += int(n.Value())
			}
		}
		if wrong == nil && devices != 8 {
			return fmt.Errorf("%d of 8 devices are in use", devices)
		}
		return wrong
	})
}

// TestLead: the second pacer leads once the first one ends, and at once if the lease is released.
func TestLead(t *testing.T) {
	c := fresh(t, 0)
	lease := func(id string) kubernetes.Lease {
		return kubernetes.Lease{Namespace: "default", Name: "pacer", Identity: id, Duration: 30 * time.Second} // it is released, not waited for
	}
	var leading atomic.Int32
	var all sync.WaitGroup
	started, waits := make(chan string, 4), make(chan string, 4)
	lead := func(ctx context.Context, id string) {
		all.Go(func() {
			err := kubernetes.Lead(ctx, c.Client, lease(id), func(holder string) { waits <- holder }, func(ctx context.Context) {
				if leading.Add(1) != 1 {
					t.Error("two pacers lead")
				}
				started <- id
				<-ctx.Done()
				leading.Add(-1)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	first, stop := context.WithCancel(t.Context())
	lead(first, "first")
	if got := <-started; got != "first" {
		t.Fatalf("%s leads", got)
	}
	second, stopSecond := context.WithCancel(t.Context())
	lead(second, "second")
	if got := <-waits; got != "first" {
		t.Errorf("waits for %s, want first", got)
	}
	stop()
	if got := <-started; got != "second" {
		t.Errorf("%s leads", got)
	}
	stopSecond()
	all.Wait()

	bad := lease("x")
	bad.Identity = ""
	if err := kubernetes.Lead(t.Context(), c.Client, bad, nil, nil); err == nil {
		t.Error("a lease without a holder is accepted")
	}
}

// TestConflict: a write of what was observed before another write is refused, and so is one of a
// job that was deleted.
func TestConflict(t *testing.T) {
	c := fresh(t, 1)
	c.Submit(t, job("a", "a", 1, 10))
	engine, err := kubernetes.New(c.Client, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Observe(t.Context())
	if err != nil || len(s.Jobs) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	_, err = c.Client.BatchV1().Jobs("default").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), meta.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old, second := s.Jobs[0], s.Jobs[0]
	if err := engine.Record(t.Context(), &old, live.Record{}); !errors.Is(err, live.ErrConflict) {
		t.Errorf("record of an old version: %v, want a conflict", err)
	}
	background := meta.DeletePropagationBackground
	if err := c.Client.BatchV1().Jobs("default").Delete(t.Context(), "a", meta.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	kubetest.Wait(t, "deleted", func() error {
		if n := len(jobs(t, c)); n > 0 {
			return fmt.Errorf("%d jobs", n)
		}
		return nil
	})
	if err := engine.Stop(t.Context(), &second); err != nil {
		t.Errorf("stop of a held job: %v", err)
	}
	second.Phase = live.Running
	if err := engine.Stop(t.Context(), &second); !errors.Is(err, live.ErrGone) {
		t.Errorf("stop of a deleted job: %v, want gone", err)
	}
	c.Submit(t, job("a", "a", 1, 10)) // another with its name
	if err := engine.Stop(t.Context(), &second); !errors.Is(err, live.ErrConflict) {
		t.Errorf("stop of a job of another UID: %v, want a conflict", err)
	}
}
