package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// served returns an engine that has read two nodes and a held job, and writes to an API server with a handler.
func served(t *testing.T, handler http.HandlerFunc) (*Cluster, *live.Job) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := filled(t, 2, 0)
	c.client, c.Limit, c.placing = client, time.Minute, map[types.UID]int{}
	c.events = newEventQueue(client.CoreV1().Events(""), c.Limit)
	j := kubetest.Job("a", 1, 1, map[string]string{"model": "a", "steps": "1000", "batch": "64"})
	j.UID, j.ResourceVersion = "a", "1"
	parsed, err := c.jobOf(j)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Version, parsed.Ref = j.ResourceVersion, j
	return c, &parsed
}

var twoNodes = live.Record{Plan: "dp=2", RunPlan: "dp=2", Slots: live.Slots{"n0": 1, "n1": 1}, RunSlots: live.Slots{"n0": 1, "n1": 1}}

// TestPlacedEarly: pods that are placed before the server has answered the start of their job are placed all the same.
func TestPlacedEarly(t *testing.T) {
	yes := true
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{OwnerReferences: []meta.OwnerReference{{UID: "a", Controller: &yes}}}}
	var c *Cluster
	c, j := served(t, func(w http.ResponseWriter, _ *http.Request) {
		if c.Settled() {
			t.Error("no pod is awaited during a start")
		}
		if c.events.busy != 1 {
			t.Error("Events do not wait for the start")
		}
		c.placed(pod)
		c.placed(pod)
		w.Header().Set("Content-Type", "application/json")
		started := kubetest.Job("a", 1, 1, nil)
		started.Kind, started.APIVersion, started.ResourceVersion = "Job", "batch/v1", "2"
		_ = json.NewEncoder(w).Encode(started)
	})
	if err := c.Start(t.Context(), j, twoNodes); err != nil {
		t.Fatal(err)
	}
	if !c.Settled() || j.Version != "2" {
		t.Errorf("pods are awaited that were placed: %v, version %s", c.placing, j.Version)
	}
}

// TestStartFails: no pods are awaited of a job that was not started.
func TestStartFails(t *testing.T) {
	c, j := served(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
	if err := c.Start(t.Context(), j, twoNodes); !errors.Is(err, live.ErrConflict) || !c.Settled() {
		t.Errorf("%v, awaited %v", err, c.placing)
	}
}

// TestPlaceConflict: a conflict refuses the placement of a pod, and the next attempt places it.
func TestPlaceConflict(t *testing.T) {
	answers := []int{http.StatusConflict, http.StatusOK}
	var c *Cluster
	c, _ = served(t, func(w http.ResponseWriter, _ *http.Request) {
		if c.events.busy != 1 {
			t.Error("Events do not wait for the placement")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answers[0])
		answers = answers[1:]
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Pod"}`)
	})
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	c.pods = corelisters.NewPodLister(pods)
	yes := true
	err := pods.Add(&core.Pod{ObjectMeta: meta.ObjectMeta{Name: "a-0", Namespace: "default", OwnerReferences: []meta.OwnerReference{{UID: "a", Controller: &yes}},
		Annotations: map[string]string{SlotsAnnotation: "n0=1+n1=1", batch.JobCompletionIndexAnnotation: "0"}},
		Spec: core.PodSpec{SchedulingGates: []core.PodSchedulingGate{{Name: Gate}}}})
	if err != nil {
		t.Fatal(err)
	}
	c.await("a", 1)
	name := cache.NewObjectName("default", "a-0")
	if err := c.placePod(t.Context(), name); err == nil || c.Settled() {
		t.Error("a conflict counts as a placement")
	}
	if err := c.placePod(t.Context(), name); err != nil || len(c.placing) > 0 || c.events.busy != 0 {
		t.Errorf("second attempt: %v, awaited %v", err, c.placing)
	}
}

// TestHang: an API server that does not answer a request is an error after the limit.
func TestHang(t *testing.T) {
	end := make(chan struct{})
	c, j := served(t, func(http.ResponseWriter, *http.Request) { <-end })
	defer close(end)
	c.Limit = 100 * time.Millisecond
	for name, write := range map[string]func() error{
		"start":  func() error { return c.Start(t.Context(), j, twoNodes) },
		"record": func() error { return c.Record(t.Context(), j, twoNodes) },
		"access": func() error { return c.access(t.Context()) },
	} {
		if err := write(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStarted: a job trains from when the last of its pods has a node, not from when it was let run.
func TestStarted(t *testing.T) {
	at := func(seconds int64) *meta.Time { v := meta.Unix(seconds, 0); return &v }
	j := kubetest.Job("a", 2, 1, nil)
	j.Status.StartTime = at(100)
	pods := []*core.Pod{{Status: core.PodStatus{StartTime: at(160)}}, {Status: core.PodStatus{StartTime: at(130)}}, {}}
	for n, want := range []int64{100, 160, 160, 160} {
		got := withState(live.Job{}, j, live.Running, &held{pods: pods[:n]})
		if got.Started.Unix() != want {
			t.Errorf("with %d pods: started at %d, want %d", n, got.Started.Unix(), want)
		}
	}
}
