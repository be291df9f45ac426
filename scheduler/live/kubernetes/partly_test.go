package kubernetes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// succeed lets the first pod of a job succeed.
func succeed(t *testing.T, c *kubetest.Cluster, name string) {
	t.Helper()
	kubetest.Wait(t, "first pod of "+name, func() error { return succeedNow(t, c, name) })
}

func succeedNow(t *testing.T, c *kubetest.Cluster, name string) error {
	t.Helper()
	for _, p := range podsOf(t, c, name) {
		if p.Status.Phase != core.PodRunning {
			continue
		}
		p.Status.Phase = core.PodSucceeded
		_, err := c.Client.CoreV1().Pods(p.Namespace).UpdateStatus(t.Context(), &p, meta.UpdateOptions{})
		return err
	}
	return errors.New("no pod runs")
}

func suspend(t *testing.T, c *kubetest.Cluster, job string) {
	t.Helper()
	_, err := c.Client.BatchV1().Jobs("default").Patch(t.Context(), job, types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), meta.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDoneWhileStopped: a job on two nodes that is suspended just as a pod succeeds is complete by its success policy, and not
// held for ever. The job controller of Kubernetes loses the success if it deletes the pod before it has seen it: then the
// job runs again, and is complete with the next success.
func TestDoneWhileStopped(t *testing.T) {
	c := fresh(t, 2)
	p := startPacer(t, c, "fifo")
	c.Submit(t, job("wide", "a", 8, 2000))
	kubetest.Wait(t, "wide", func() error { return runsAsRecorded(t, c, jobs(t, c)["wide"]) })
	succeed(t, c, "wide")
	suspend(t, c, "wide")
	kubetest.Wait(t, "end", func() error {
		j := jobs(t, c)["wide"]
		if ended(t, j) {
			return nil
		}
		if runsAsRecorded(t, c, j) == nil {
			t.Logf("runs again: %v", succeedNow(t, c, "wide"))
		}
		return fmt.Errorf("%s", p.story(j))
	})
}

// TestPartlyDone: a job on two nodes with a pod that has succeeded is left to end, though the policy would resize it for
// another. If someone suspends it then, an event says that it cannot start again, and the other gets its devices.
func TestPartlyDone(t *testing.T) {
	c := fresh(t, 2)
	p := startPacer(t, c, "optimus") // makes room by resizing
	wide := job("wide", "a", 8, 2000)
	wide.Spec.SuccessPolicy = nil
	c.Submit(t, wide)
	kubetest.Wait(t, "wide", func() error { return runsAsRecorded(t, c, jobs(t, c)["wide"]) })
	succeed(t, c, "wide")
	kubetest.Wait(t, "status", func() error {
		if j := jobs(t, c)["wide"]; j.Status.Succeeded != 1 {
			return fmt.Errorf("%+v", j.Status)
		}
		return nil
	})
	before := p.last()
	c.Submit(t, job("small", "b", 2, 3000))
	kubetest.Wait(t, "decisions with small", func() error {
		if r := p.last(); r.Jobs[live.Held] == 0 || r.Made == before.Made || r.Ticks < before.Ticks+3 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	all := jobs(t, c)
	if j := all["wide"]; *j.Spec.Suspend || *j.Status.Ready != 1 || !*all["small"].Spec.Suspend {
		t.Errorf("job wide is stopped, or small started: %+v", j.Status)
	}
	for _, e := range p.of(live.StoppedJob) {
		t.Errorf("%s is stopped: %s", e.Object, e.Message)
	}
	suspend(t, c, "wide")
	kubetest.Wait(t, "event", func() error {
		for _, e := range p.of(live.Faulty) {
			if e.Object == "job default/wide" && strings.Contains(e.Message, " had succeeded, which a Job does not run again") {
				return nil
			}
		}
		return fmt.Errorf("none of %d faults says so", len(p.of(live.Faulty)))
	})
	kubetest.Wait(t, "small", func() error { return runsAsRecorded(t, c, jobs(t, c)["small"]) })
	if j := jobs(t, c)["wide"]; !*j.Spec.Suspend {
		t.Errorf("job wide was started again: %s", j.Annotations[kubernetes.RecordAnnotation])
	}
}

// TestReleased: of two jobs with a pod that has succeeded, the one with a limit is suspended after it, and another gets its
// devices. Events of Kubernetes say so.
func TestReleased(t *testing.T) {
	c := fresh(t, 4)
	p := startPacer(t, c, "fifo")
	limited, unlimited := job("limited", "a", 8, 2000), job("unlimited", "a", 8, 2000)
	limited.Annotations[kubernetes.ReleaseAnnotation] = "30m"
	limited.Spec.SuccessPolicy, unlimited.Spec.SuccessPolicy = nil, nil
	c.Submit(t, limited)
	c.Submit(t, unlimited)
	for _, name := range []string{"limited", "unlimited"} {
		kubetest.Wait(t, name, func() error { return runsAsRecorded(t, c, jobs(t, c)[name]) })
		succeed(t, c, name)
		kubetest.Wait(t, "status of "+name, func() error {
			if j := jobs(t, c)[name]; j.Status.Succeeded != 1 {
				return fmt.Errorf("%+v", j.Status)
			}
			return nil
		})
	}
	c.Submit(t, job("waits", "b", 8, 3000))
	says := func(job, reason, text string) {
		t.Helper()
		kubetest.Wait(t, reason+" of "+job, func() error {
			list, err := c.Client.CoreV1().Events("default").List(t.Context(), meta.ListOptions{FieldSelector: "involvedObject.name=" + job})
			if err != nil {
				return err
			}
			for _, e := range list.Items {
				if e.Reason == reason && strings.Contains(e.Message, text) {
					return nil
				}
			}
			return fmt.Errorf("%d events, none with %q; %+v", len(list.Items), text, p.last())
		})
	}
	before := p.last().Ticks
	kubetest.Wait(t, "observations", func() error { // the clock counts from when it is seen
		if n := p.last().Ticks - before; n < 3 {
			return fmt.Errorf("%d ticks", n)
		}
		return nil
	})
	p.later(2 * time.Minute)
	says("limited", "PartlyDone", "is stopped 30m0s after that")
	says("unlimited", "PartlyDone", "without a limit")
	if n := len(p.of(live.StoppedJob)); n > 0 || *jobs(t, c)["limited"].Spec.Suspend {
		t.Errorf("%d jobs are stopped before their limit", n)
	}
	p.later(30 * time.Minute)
	says("limited", "Stopped", "partly done for")
	kubetest.Wait(t, "waits", func() error { return runsAsRecorded(t, c, jobs(t, c)["waits"]) })
	all := jobs(t, c)
	if !*all["limited"].Spec.Suspend || *all["unlimited"].Spec.Suspend {
		t.Errorf("limited is suspended: %v, want true; unlimited: %v, want false", *all["limited"].Spec.Suspend, *all["unlimited"].Spec.Suspend)
	}
}
