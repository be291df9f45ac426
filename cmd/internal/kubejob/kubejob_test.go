//go:build !nokubernetes

package kubejob

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler/executor"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// TestJobs: tasks run with their numbers; a job is found while it runs, ends as its worst task, and can be submitted again.
func TestJobs(t *testing.T) {
	c := kubetest.Shared(t)
	c.Reset(t)
	c.AddNodes(t, 2, 4)
	dir := t.TempDir()
	file := filepath.Join(dir, "pod.yaml")
	text := "metadata: {annotations: {kubemin/run: \"true\"}}\nspec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: c, image: i}]}\n"
	spectest.WriteFile(t, file, []byte(text), 0o600)
	template, err := ReadTemplate(file)
	if err != nil {
		t.Fatal(err)
	}
	k := Cluster{Client: c.Client, Namespace: "default", Template: template, Poll: 20 * time.Millisecond}
	submit := func(script string) executor.Handle {
		t.Helper()
		h, err := k.Submit(t.Context(), executor.Job{Key: "Key_1.a", Args: []string{"sh", "-c", script}, Dir: dir, GPUs: 1, Tasks: 3})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	wait := func(h executor.Handle, want executor.JobEnd) {
		t.Helper()
		if end, err := h.Wait(t.Context(), nil); err != nil || end != want {
			t.Errorf("%+v, %v, want %+v", end, err, want)
		}
	}
	first := submit("touch task-$JOB_COMPLETION_INDEX; until [ -e go ]; do sleep 0.05; done")
	if again := submit("false"); again.(*handle).job.UID != first.(*handle).job.UID {
		t.Error("a job that runs is submitted again")
	}
	if h, err := k.Find(t.Context(), "Key_1.a"); h == nil || err != nil {
		t.Errorf("found %v, %v", h, err)
	}
	spectest.WriteFile(t, filepath.Join(dir, "go"), nil, 0o600)
	wait(first, executor.JobEnd{State: executor.JobEnded})
	if tasks, err := filepath.Glob(filepath.Join(dir, "task-[012]")); err != nil || len(tasks) != 3 {
		t.Errorf("tasks %v, %v", tasks, err)
	}
	if h, err := k.Find(t.Context(), "Key_1.a"); h != nil || err != nil {
		t.Errorf("found %v, %v after its end", h, err)
	}
	second := submit("sleep 100")
	wait(first, executor.JobEnd{State: executor.JobUnknown, Code: -1})
	if err := second.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	if err := second.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	wait(second, executor.JobEnd{State: executor.JobUnknown, Code: -1})
}

// TestBadTemplates: errors name the file and the field.
func TestBadTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"spec: {containers: []}":              "image is missing",
		"spec: {containers: [{name: c}]}":     "image is missing",
		"spec: {container: [{name: c}]}":      `unknown field "container"`,
		"spec: [":                             "pod.yaml",
		"spec: {containers: {name: c, a: b}}": "pod.yaml",
	} {
		file := filepath.Join(t.TempDir(), "pod.yaml")
		spectest.WriteFile(t, file, []byte(text), 0o600)
		if _, err := ReadTemplate(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestNodes: the pods of a job on several nodes are apart, know their numbers, and are not started again one by one.
func TestNodes(t *testing.T) {
	k := Cluster{Template: core.PodTemplateSpec{Spec: core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i", Env: []core.EnvVar{{Name: "A", Value: "1"}}}}}}}
	j := k.job(executor.Job{Key: "K.a", Args: []string{"pacer"}, Nodes: 2, GPUs: 8})
	pod := &j.Spec.Template.Spec
	if *j.Spec.Completions != 2 || *j.Spec.Parallelism != 2 || j.Spec.BackoffLimit == nil || *j.Spec.BackoffLimit != 0 {
		t.Errorf("%+v, want 2 pods at once, none again", j.Spec)
	}
	apart := pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(apart) != 1 || apart[0].TopologyKey != core.LabelHostname || apart[0].LabelSelector.MatchLabels[batch.JobNameLabel] != j.Name {
		t.Errorf("%+v, want pods of %s on different hosts", apart, j.Name)
	}
	var names []string
	for _, e := range pod.Containers[0].Env {
		names = append(names, e.Name)
	}
	if want := []string{"A", executor.NodesVar, executor.NodeVar, executor.AttemptVar}; !slices.Equal(names, want) || pod.Containers[0].Env[1].Value != "2" {
		t.Errorf("variables %v, want %v", names, want)
	}
	if gpus := pod.Containers[0].Resources.Limits["nvidia.com/gpu"]; gpus.Value() != 8 {
		t.Errorf("%s GPUs, want 8", gpus.String())
	}
	one := k.job(executor.Job{Key: "k", Args: []string{"pacer"}})
	if *one.Spec.Completions != 1 || one.Spec.BackoffLimit != nil || one.Spec.Template.Spec.Affinity != nil || len(k.Template.Spec.Containers[0].Env) != 1 {
		t.Errorf("a job on one node: %+v; template %+v", one.Spec, k.Template)
	}
	if _, err := k.Submit(t.Context(), executor.Job{Key: "k", Args: []string{"pacer"}, Nodes: 2, Tasks: 3}); err == nil || !strings.Contains(err.Error(), "3 tasks of 2 nodes") {
		t.Error(err)
	}
}
