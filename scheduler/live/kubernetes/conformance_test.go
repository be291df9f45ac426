package kubernetes_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// actor plays the pods of jobs.
type actor struct {
	*kubernetes.Cluster
	t *testing.T
	c *kubetest.Cluster
}

func name(id spec.JobID) string { return strings.TrimPrefix(string(id), "default/") }

// Submit implements livetest.Actor.
func (a *actor) Submit(j *spec.Job) error {
	a.c.Submit(a.t, job(name(j.ID), j.Model.Name, j.Devices, int(j.Steps)))
	return nil
}

// End implements livetest.Actor: the pods succeed. The kubelet may not have seen them yet.
func (a *actor) End(id spec.JobID) error {
	kubetest.Wait(a.t, name(id)+" ends", func() error {
		var all error
		for _, p := range podsOf(a.t, a.c, name(id)) {
			if p.Status.Phase == core.PodSucceeded {
				continue
			}
			p.Status.Phase = core.PodSucceeded
			_, err := a.c.Client.CoreV1().Pods(p.Namespace).UpdateStatus(a.t.Context(), &p, meta.UpdateOptions{})
			all = errors.Join(all, err)
		}
		return all
	})
	return nil
}

// Hurry implements livetest.Actor.
func (a *actor) Hurry(id spec.JobID) error { return hurry(a.t, a.c, name(id)) }

// hurry makes the controller of Jobs look at the pods of a job. It does so once a second, and at once after a change of what
// the job wants, such as a time that no controller here reads.
func hurry(t *testing.T, c *kubetest.Cluster, job string) error {
	patch := fmt.Sprintf(`{"spec":{"ttlSecondsAfterFinished":%d}}`, 100000+hurries.Add(1))
	_, err := c.Client.BatchV1().Jobs("default").Patch(t.Context(), job, types.MergePatchType, []byte(patch), meta.PatchOptions{})
	return err
}

var hurries atomic.Int64

// TestConformance runs a trace in the simulator, and on a real API server with the controller of Jobs, the scheduler and
// nodes with pods that are played by the clock of the trace: every policy is called at the same times with the same jobs, and
// decides the same. PACER_SOAK runs 200 jobs.
func TestConformance(t *testing.T) {
	n, nodes := 12, 2 // of each type: jobs wait for others soon
	if livetest.Soak() {
		n, nodes = 200, 4
	}
	if testing.Short() {
		n = 6
	}
	for _, policy := range livetest.Conforming {
		t.Run(policy, func(t *testing.T) {
			c := kubetest.Shared(t)
			c.Reset(t)
			for _, accelerator := range []string{"x", "y"} {
				c.AddNodesOf(t, accelerator, nodes, 4)
			}
			o := options()
			o.Model = livetest.Model
			o.NodeType = func(accelerator string, _ int) (spec.NodeGroup, error) {
				return spec.NodeGroup{Accelerator: spec.Accelerator{Name: accelerator}}, nil
			}
			engine, err := kubernetes.New(c.Client, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			state, err := engine.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tr := livetest.NewTraceOn(state.Nodes, n, 7)
			tr.Even = true
			for i := range tr.Jobs {
				j := &tr.Jobs[i]
				j.ID, j.Tenant = "default/"+j.ID, "default"
			}
			m := livetest.NewMirror(tr, &actor{Cluster: engine, t: t, c: c})
			m.Violation = func(text string) { t.Errorf("at %v: %s", m.Now(), text) }
			tr.Conform(t, m, policy, nil)
			kubetest.Wait(t, "complete", func() error {
				for name, j := range jobs(t, c) {
					if !ended(t, j) {
						return fmt.Errorf("job %s has not ended: %+v", name, j.Status)
					}
				}
				return nil
			})
		})
	}
}
