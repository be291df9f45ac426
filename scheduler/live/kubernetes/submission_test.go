package kubernetes

import (
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

const testManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: x} # stays
---
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  annotations: {pacer.dev/model: a, pacer.dev/batch: "64"}
spec:
  suspend: true
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    spec:
      nodeSelector: {nvidia.com/gpu.product: H100}
      containers:
      - name: log
      - name: train
        image: i
        command: [python, train.py]
        args: ["--lr", "0.1"]
        resources:
          requests: {cpu: 4, memory: 8Gi}
          limits: {nvidia.com/gpu: 4, memory: 16Gi}
---
{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "plain-"}, "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}
---
{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "own-"}, "spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"amd.com/gpu": 2}}}]}}}}
`

// TestManifest: Jobs with devices are read as pacer schedule reads them; one without annotations has only its request.
func TestManifest(t *testing.T) {
	m, err := ReadManifest([]byte(testManifest), testOptions)
	if err != nil || len(m.Jobs) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	j := m.Jobs[0]
	if j.Name != "train" || j.Err != nil || !j.Managed || j.Pods != 2 || j.Job.Devices != 8 || j.Job.Model.Name != "a" || j.Job.GlobalBatch != 64 || j.Job.Accelerator != "H100" {
		t.Errorf("%+v", j)
	}
	if got := strings.Join(j.Command, " "); got != "python train.py --lr 0.1" {
		t.Errorf("command %q", got)
	}
	if j := m.Jobs[1]; j.Name != "own-" || j.Err != nil || j.Managed || j.Pods != 1 || j.Job.Devices != 2 {
		t.Errorf("%+v", j)
	}
	if got := m.String(); got != testManifest {
		t.Errorf("unchanged manifest:\n%s", got)
	}
}

// TestManifestSet: pods, devices, plan, CPUs and memory of one Job change, and nothing else.
func TestManifestSet(t *testing.T) {
	m, err := ReadManifest([]byte(testManifest), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := spec.ParsePlan("dp=6")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(&m.Jobs[0], spec.NewShape(2, 2, 2), plan); err != nil {
		t.Fatal(err)
	}
	before, after := strings.Split(testManifest, "---\n"), strings.Split(m.String(), "---\n")
	for i := range before {
		if i != 1 && before[i] != after[i] {
			t.Errorf("document %d changed:\n%s", i+1, after[i])
		}
	}
	var was, is batch.Job
	for text, j := range map[string]*batch.Job{before[1]: &was, after[1]: &is} {
		if err := yaml.UnmarshalStrict([]byte(text), j); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	r := is.Spec.Template.Spec.Containers[1].Resources
	if *is.Spec.Parallelism != 3 || *is.Spec.Completions != 3 || is.Annotations[PlanAnnotation] != plan.String() || is.Spec.Template.Annotations[PlanAnnotation] != plan.String() ||
		r.Requests.Cpu().Value() != 2 || r.Requests.Memory().Value() != 4<<30 || r.Limits.Memory().Value() != 8<<30 || r.Limits.Name("nvidia.com/gpu", "").Value() != 2 {
		t.Errorf("changed:\n%s", after[1])
	}
	// What was set is taken back: the rest is as it was.
	*is.Spec.Parallelism, *is.Spec.Completions = 2, 2
	delete(is.Annotations, PlanAnnotation)
	is.Spec.Template.Annotations = nil
	is.Spec.Template.Spec.Containers[1].Resources = was.Spec.Template.Spec.Containers[1].Resources
	got, err1 := yaml.Marshal(is)
	want, err2 := yaml.Marshal(was)
	if err1 != nil || err2 != nil || string(got) != string(want) {
		t.Errorf("more changed:\n%s\nwant\n%s", got, want)
	}
}

// TestManifestFaults: what cannot be used is named.
func TestManifestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                 "document 1",
		"a: b\n---\nkind: [\n": "document 2",
		"apiVersion: batch/v1\nkind: Job\nspec: 7\n": "document 1",
	} {
		if _, err := ReadManifest([]byte(text), testOptions); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, c := range []struct{ old, new, want string }{
		{`pacer.dev/batch: "64"`, `pacer.dev/batch: "x"`, "pacer.dev/batch"},
		{"pacer.dev/model: a", "pacer.dev/model: b", `unknown model "b"`},
		{"completions: 2", "completions: 3", "completions and parallelism differ"},
		{"gpu: 4", "gpu: 0", "no container has a limit"},
	} {
		m, err := ReadManifest([]byte(strings.Replace(testManifest, c.old, c.new, 1)), testOptions)
		if err != nil || len(m.Jobs) != 2 || m.Jobs[0].Err == nil || !strings.Contains(m.Jobs[0].Err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %q", c.new, m, err, c.want)
		}
	}
}

// FuzzManifest: no text makes it panic, and what is set can be read again.
func FuzzManifest(f *testing.F) {
	f.Add(testManifest)
	f.Add("kind: Job\napiVersion: batch/v1\nspec: {parallelism: -1}\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadManifest([]byte(text), testOptions)
		if err != nil {
			return
		}
		for i := range m.Jobs {
			if m.Jobs[i].Err != nil {
				continue
			}
			if err := m.Set(&m.Jobs[i], spec.NewShape(2), spec.Plan{DP: 2, MicroBatch: 1, AccumSteps: 1}); err != nil {
				continue
			}
			again, err := ReadManifest([]byte(m.String()), testOptions)
			if err != nil || len(again.Jobs) != len(m.Jobs) || again.Jobs[i].Job.Devices != 2 {
				t.Fatalf("%v of\n%s", err, m)
			}
		}
	})
}
