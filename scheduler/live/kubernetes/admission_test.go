package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// answering is an Admission that runs.
type answering struct {
	mu      sync.Mutex
	answers []kubernetes.Answer
	fail    error // of all plans
}

// startAdmission answers the checks of a cluster until the end of the test. A plan fits on at least 4 devices of accelerators
// other than "small".
func startAdmission(t *testing.T, c *kubetest.Cluster) *answering {
	t.Helper()
	a := &answering{}
	admission, err := kubernetes.NewAdmission(dynamicClient(t, c), kubernetes.AdmissionOptions{
		Model: options().Model,
		Plan: func(_ context.Context, j spec.Job, shape spec.Shape) (out planner.Choice, err error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.fail != nil {
				return out, a.fail
			}
			if shape.Total() < 4 || j.Accelerator == "small" {
				return out, fmt.Errorf("%w: %d devices of %s are too few", planner.ErrInfeasible, shape.Total(), j.Accelerator)
			}
			out.Config.Plan = schedulertest.OnePlan(shape.Total())
			if (j.Plan != spec.Plan{}) {
				out.Config.Plan = j.Plan
			}
			return out, nil
		},
		OnAnswer: func(r kubernetes.Answer) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.answers = append(a.answers, r)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- admission.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *answering) failing(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = err
}

const queues = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: pacer}
spec: {controllerName: pacer.dev/plan}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: other}
spec: {controllerName: example.com/other}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: large}
spec: {nodeLabels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: small}
`

// workload is the manifest of a workload of 4 pods with 2 devices.
func workload(name, annotations string) string {
	return fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: %s}
spec:
  podSets:
    - {name: main, count: 4, minCount: 1, template: {metadata: {annotations: {%s}}, spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 2}}}]}}}
`, name, annotations)
}

// reserved is the status of a workload that Kueue has reserved quota for.
func reserved(flavor string, pods int, others string) string {
	return fmt.Sprintf(`{"status": {"conditions": [{"type": "QuotaReserved", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
		"admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": %d, "flavors": {"nvidia.com/gpu": %q}}]},
		"admissionChecks": [%s {"name": "pacer", "state": "Pending", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`, pods, flavor, others)
}

// checkState is the state of an admission check, as the server has it.
type checkState struct {
	Name, State, Message string
	RequeueAfterSeconds  int
	PodSetUpdates        []struct {
		Name        string
		Annotations map[string]string
	}
}

var workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}

func dynamicClient(t *testing.T, c *kubetest.Cluster) dynamic.Interface {
	t.Helper()
	config, err := kubetest.Config(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// reserve creates a workload that Kueue has reserved quota for.
func reserve(t *testing.T, c *kubetest.Cluster, name, annotations, status string) {
	t.Helper()
	w := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(workload(name, annotations)), &w.Object); err != nil {
		t.Fatal(err)
	}
	client := dynamicClient(t, c).Resource(workloads).Namespace("default")
	if _, err := client.Create(t.Context(), w, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(status), meta.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// states returns the admission checks of a workload.
func states(t *testing.T, c *kubetest.Cluster, name string) map[string]checkState {
	t.Helper()
	var list []checkState
	w, err := dynamicClient(t, c).Resource(workloads).Namespace("default").Get(t.Context(), name, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checks, _, err := unstructured.NestedFieldNoCopy(w.Object, "status", "admissionChecks")
	text, marshalled := json.Marshal(checks)
	if err := errors.Join(err, marshalled, json.Unmarshal(text, &list)); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	out := map[string]checkState{}
	for _, s := range list {
		out[s.Name] = s
	}
	return out
}

// TestAdmission: pacer answers the workloads that Kueue has reserved quota for. The server has the schemas of Kueue; the test
// takes the part of its controller.
func TestAdmission(t *testing.T) {
	c := fresh(t, 0)
	c.InstallKueue(t)
	a := startAdmission(t, c)
	c.Kubectl(t, queues, "apply", "-f", "-")
	kubetest.Wait(t, "active check", func() error {
		for name, want := range map[string]string{"pacer": "True", "other": ""} {
			if got := c.Kubectl(t, "", "get", "admissioncheck", name, "-o", `jsonpath={.status.conditions[?(@.type=="Active")].status}`); got != want {
				return fmt.Errorf("check %s is active: %q, want %q", name, got, want)
			}
		}
		return nil
	})
	const model = `pacer.dev/model: a, pacer.dev/batch: "64"`
	other := `{"name": "other", "state": "Pending", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},`
	for _, tc := range []struct {
		name, annotations, flavor string
		pods                      int
		state, message, plan      string
	}{
		{"whole", model, "large", 4, "Ready", " on 8 x NVIDIA-A100-SXM4-80GB, ", schedulertest.OnePlan(8).String()},
		{"part", model, "large", 2, "Ready", "on 4 x", schedulertest.OnePlan(4).String()},
		{"little", model, "large", 1, "Retry", "no plan fits on 1 pods", ""},
		{"nowhere", model, "small", 4, "Rejected", "8 devices of small are too few", ""},
		{"planned", model + `, pacer.dev/plan: "dp=4,tp=2"`, "large", 4, "Ready", "dp=4,tp=2", ""},
		{"unknown", `pacer.dev/model: nope`, "large", 4, "Rejected", `unknown model "nope"`, ""},
		{"strange", `x: "1"`, "large", 4, "Ready", "no annotation pacer.dev/model", ""},
	} {
		reserve(t, c, tc.name, tc.annotations, reserved(tc.flavor, tc.pods, other))
		kubetest.Wait(t, tc.name, func() error {
			got := states(t, c, tc.name)
			s := got["pacer"]
			plan := ""
			if len(s.PodSetUpdates) == 1 && s.PodSetUpdates[0].Name == "main" {
				plan = s.PodSetUpdates[0].Annotations[kubernetes.PlanAnnotation]
			}
			if s.State != tc.state || !strings.Contains(s.Message, tc.message) || plan != tc.plan || (s.RequeueAfterSeconds > 0) != (tc.state == "Retry") {
				return fmt.Errorf("%+v, want %s with %q and plan %q", s, tc.state, tc.message, tc.plan)
			}
			if got["other"].State != "Pending" {
				return fmt.Errorf("the check of others: %+v", got["other"])
			}
			return nil
		})
	}

	// Without an answer of the planner a workload waits, and says why.
	a.failing(errors.New("no answer"))
	reserve(t, c, "waits", model, reserved("large", 4, ""))
	kubetest.Wait(t, "waits", func() error {
		if s := states(t, c, "waits")["pacer"]; s.State != "Pending" || s.Message != "no answer" {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	a.failing(nil)
	kubetest.Wait(t, "answer", func() error {
		if s := states(t, c, "waits")["pacer"]; s.State != "Ready" {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// TestKueue lets the controller of Kueue admit jobs with plans of pacer.
func TestKueue(t *testing.T) {
	c := fresh(t, 4)
	c.StartKueue(t)
	startAdmission(t, c)
	c.Kubectl(t, queues+`
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: pacer}]}
  resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: large, resources: [{name: nvidia.com/gpu, nominalQuota: 12}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, namespace: default}
spec: {clusterQueue: q}
`, "apply", "-f", "-")
	submit := func(name string, pods int, more ...string) {
		j := kubetest.Job(name, pods, 2, map[string]string{"model": "a", "batch": "64"})
		j.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "lq"} // Kueue's, not pacer's
		for i := 0; i < len(more); i += 2 {
			j.Annotations[more[i]] = more[i+1]
		}
		c.Submit(t, j)
	}
	runs := func(name string, pods int) func() error {
		return func() error {
			j := jobs(t, c)[name]
			if *j.Spec.Suspend || j.Status.Ready == nil || int(*j.Status.Ready) != pods {
				return fmt.Errorf("%+v", j.Status)
			}
			for _, p := range podsOf(t, c, name) {
				if want := schedulertest.OnePlan(2 * pods).String(); p.Annotations[kubernetes.PlanAnnotation] != want || p.Spec.NodeSelector["nvidia.com/gpu.product"] == "" {
					return fmt.Errorf("plan %q, want %q; nodes %v", p.Annotations[kubernetes.PlanAnnotation], want, p.Spec.NodeSelector)
				}
			}
			return nil
		}
	}
	submit("whole", 4)
	kubetest.Wait(t, "whole", runs("whole", 4))
	submit("part", 4, "kueue.x-k8s.io/job-min-parallelism", "1", "kueue.x-k8s.io/job-completions-equal-parallelism", "true")
	kubetest.Wait(t, "part", runs("part", 2)) // 4 of 12 devices are left
	submit("little", 1)
	deleteJob(t, c, "whole")
	kubetest.Wait(t, "little", func() error {
		j := jobs(t, c)["little"]
		text := c.Kubectl(t, "", "get", "workloads", "-o", `jsonpath={range .items[*]}{.metadata.ownerReferences[0].name} {.spec.active}{"\n"}{end}`)
		if !*j.Spec.Suspend || !strings.Contains(text, "little false\n") {
			return fmt.Errorf("suspended %v, workloads %s", *j.Spec.Suspend, text)
		}
		return nil
	})
}
