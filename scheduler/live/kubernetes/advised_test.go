package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	discovery "k8s.io/client-go/discovery/fake"
	dynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// advisedObjects are objects that are advised, and below what must be left out.
const advisedObjects = `
- {kind: JobSet, apiVersion: jobset.x-k8s.io/v1alpha2, metadata: {name: s}, spec: {suspend: true, replicatedJobs: [{template: {spec: {parallelism: 2, template: POD}}}]}, status: {conditions: [{type: Failed, status: "False"}]}}
- {kind: PyTorchJob, apiVersion: kubeflow.org/v1, metadata: {name: p}, spec: {runPolicy: {suspend: true}, pytorchReplicaSpecs: {Worker: {replicas: 3, template: POD}}}}
- {kind: TrainJob, apiVersion: trainer.kubeflow.org/v1alpha1, metadata: {name: t}, spec: {suspend: true, trainer: {numNodes: 1, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}}}
- {kind: TrainJob, apiVersion: trainer.kubeflow.org/v1alpha1, metadata: {name: fault}, spec: {suspend: true}}
- {kind: JobSet, apiVersion: jobset.x-k8s.io/v1alpha2, metadata: {name: runs}, spec: {suspend: false, replicatedJobs: [{template: {spec: {template: POD}}}]}}
- {kind: JobSet, apiVersion: jobset.x-k8s.io/v1alpha2, metadata: {name: ended}, spec: {suspend: true, replicatedJobs: [{template: {spec: {template: POD}}}]}, status: {conditions: [{type: Completed, status: "False"}, {type: Failed, status: "True"}]}}
- {kind: JobSet, apiVersion: jobset.x-k8s.io/v1alpha2, metadata: {name: owned, ownerReferences: [{kind: TrainJob, name: t, controller: true}]}, spec: {suspend: true, replicatedJobs: [{template: {spec: {template: POD}}}]}}
- {kind: JobSet, apiVersion: jobset.x-k8s.io/v1alpha2, metadata: {name: deleted, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [a]}, spec: {suspend: true, replicatedJobs: [{template: {spec: {template: POD}}}]}}
- {kind: JobSet, apiVersion: jobset.x-k8s.io/v1alpha2, metadata: {name: other, labels: {pacer.dev/managed: "false"}}, spec: {suspend: true, replicatedJobs: [{template: {spec: {template: POD}}}]}}
`

// TestAdvised: suspended objects of the kinds that the server has are observed as held jobs, and the advice on them is
// written on them.
func TestAdvised(t *testing.T) {
	const pod = "{spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]}}"
	var read []any
	text, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(advisedObjects, "POD", pod)))
	if err == nil {
		err = utiljson.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	lists := map[schema.GroupVersionResource]string{}
	client := fake.NewClientset()
	for i, o := range read {
		u := &unstructured.Unstructured{Object: o.(object)}
		u.SetNamespace("ml")
		u.SetUID(types.UID(fmt.Sprint("u", i)))
		u.SetResourceVersion("1")
		u.SetAnnotations(map[string]string{ModelAnnotation: "a", BatchAnnotation: "64"})
		if u.GetLabels() == nil {
			u.SetLabels(map[string]string{ManagedLabel: "true"})
		}
		objects = append(objects, u)
	}
	client.PrependReactor("create", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if e, ok := a.(clienttesting.CreateAction).GetObject().(*core.Event); ok {
			e.Name = e.GenerateName + e.InvolvedObject.Name // which the fake does not generate
		}
		return false, nil, nil
	})
	served, ok := client.Discovery().(*discovery.FakeDiscovery)
	if !ok {
		t.Fatalf("%T", client.Discovery())
	}
	for _, k := range kinds {
		lists[k.group()] = k.name + "List"
		if k.name != "PyTorchJob" { // its operator is not installed at first
			served.Resources = append(served.Resources, &meta.APIResourceList{GroupVersion: k.apiVersion})
		}
	}
	dynamicClient := dynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	o := testOptions
	o.Advised = dynamicClient
	if _, err := New(client, o); err == nil || !strings.Contains(err.Error(), "ReadOnly") {
		t.Errorf("an engine that writes: %v", err)
	}
	o.ReadOnly = true
	for _, installed := range []bool{false, true} {
		if installed {
			served.Resources = append(served.Resources, &meta.APIResourceList{GroupVersion: "kubeflow.org/v1"})
		}
		c, err := New(client, o)
		if err == nil {
			err = c.Run(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range s.Jobs {
			got = append(got, fmt.Sprint(j.Spec.ID, j.Spec.Devices, j.Phase, j.Spec.Tenant))
		}
		slices.Sort(got)
		want := []string{fmt.Sprint("ml/jobset/s", 8, live.Held, "ml"), fmt.Sprint("ml/trainjob/t", 4, live.Held, "ml")}
		if installed {
			want = slices.Insert(want, 1, fmt.Sprint("ml/pytorchjob/p", 12, live.Held, "ml"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("observed %q, want %q", got, want)
		}
		if len(s.Faults) != 1 || s.Faults[0].Object != "job ml/trainjob/fault" || c.find("ml/trainjob/fault") == nil {
			t.Errorf("faults %+v", s.Faults)
		}
		if !installed {
			continue
		}
		for i := range s.Jobs {
			c.Advise(live.Event{Kind: live.Decided, Job: &s.Jobs[i], Message: "dp=4 on n0=4: the first", DryRun: true})
		}
		dynamicClient.ClearActions()
		if err := c.WriteAdvice(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"jobset/s", "pytorchjob/p", "trainjob/t"} {
			of, name, _ := strings.Cut(name, "/")
			i := slices.IndexFunc(kinds, func(k kind) bool { return strings.ToLower(k.name) == of })
			u, err := dynamicClient.Resource(kinds[i].group()).Namespace("ml").Get(t.Context(), name, meta.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := u.GetAnnotations()[AdviceAnnotation]; got != "dp=4 on n0=4" {
				t.Errorf("%s: advice %q", name, got)
			}
		}
		events, err := client.CoreV1().Events("ml").List(t.Context(), meta.ListOptions{})
		if err != nil || len(events.Items) != 3 || events.Items[0].InvolvedObject.APIVersion == "" || events.Items[0].Message != "dp=4 on n0=4: the first" {
			t.Errorf("events %+v, %v", events, err)
		}
		// The advice that is already there is not written again.
		kubetest.Wait(t, "advice is seen", func() error {
			if c.find("ml/jobset/s").GetAnnotations()[AdviceAnnotation] == "" {
				return errors.New("no advice")
			}
			return nil
		})
		dynamicClient.ClearActions()
		c.Advise(live.Event{Kind: live.Decided, Job: &live.Job{Ref: c.find("ml/jobset/s")}, Message: "dp=4 on n0=4: another reason", DryRun: true})
		if err := c.WriteAdvice(t.Context()); err != nil || slices.ContainsFunc(dynamicClient.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "patch" }) {
			t.Errorf("%v, %v", err, dynamicClient.Actions())
		}
	}
}

// TestCached: what was read of an object counts for that version of it.
func TestCached(t *testing.T) {
	c := filled(t, 0, 1)
	j, err := c.jobs.Jobs("default").Get("j0")
	if err == nil {
		_, err = c.Observe(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.cached(j) == nil {
		t.Error("what was observed is read again")
	}
	j.ResourceVersion, j.Annotations[BatchAnnotation] = "later", "128"
	s, err := c.Observe(t.Context())
	if err != nil || len(s.Jobs) != 1 || s.Jobs[0].Spec.GlobalBatch != 128 {
		t.Errorf("after a change: %+v, %v", s, err)
	}
}
