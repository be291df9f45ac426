package kubernetes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
	kubetest.Wait(t, "first pod of "+name, func() error {
		for _, p := range podsOf(t, c, name) {
			if p.Status.Phase != core.PodRunning {
				continue
			}
			p.Status.Phase = core.PodSucceeded
			_, err := c.Client.CoreV1().Pods(p.Namespace).UpdateStatus(t.Context(), &p, meta.UpdateOptions{})
			return err
		}
		return errors.New("no pod runs")
	})
}

// TestPartlyDone: a job on two nodes with a pod that has succeeded is left to end, though the policy would resize it for
// another. If someone suspends it then, an event says that it cannot start again, and the other gets its devices.
func TestPartlyDone(t *testing.T) {
	c := fresh(t, 2)
	p := startPacer(t, c, "optimus") // makes room by resizing
	c.Submit(t, job("wide", "a", 8, 2000))
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
	_, err := c.Client.BatchV1().Jobs("default").Patch(t.Context(), "wide", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), meta.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
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
