package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	auth "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// kubernetesCluster returns a real Kubernetes with two nodes of 8 devices.
func kubernetesCluster(t *testing.T) *kubetest.Cluster {
	t.Helper()
	c := kubetest.Shared(t)
	c.Reset(t)
	c.AddNodes(t, 2, 8)
	return c
}

// TestE2EKubernetesGuide runs the commands of the guide, with its job, as an administrator.
func TestE2EKubernetesGuide(t *testing.T) {
	c := kubernetesCluster(t)
	root := moduleDir(t)
	text := spectest.ReadFile(t, filepath.Join(root, "docs/guides/kubernetes.md"))
	dir := t.TempDir()
	jobs := regexp.MustCompile("(?s)\n```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	for i, name := range []string{"job.yaml", "trainjob.yaml"} {
		if len(jobs) != 2 {
			t.Fatalf("the guide has %d jobs, want 2", len(jobs))
		}
		spectest.WriteFile(t, filepath.Join(dir, name), jobs[i][1], 0o644)
	}
	c.InstallKinds(t)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"bin/pacer": selfAs(t, "pacer"), "bin/kubectl": kubetest.Program(t, "kubectl"), "scheduler": filepath.Join(root, "scheduler")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var output strings.Builder
	for _, block := range commandBlock.FindAllSubmatch(text, -1) {
		cmd := exec.Command("sh", "-euc", string(block[1]))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "XDG_DATA_HOME="+filepath.Join(dir, "data"), "HOME="+dir,
			"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", block[1], err, out)
		}
		output.Write(out)
	}
	for _, want := range []string{"pacer: best: 16 devices (4+4+4+4)", "job.batch/train created (server dry run)", "advice: dp=",
		"trainjob.trainer.kubeflow.org/finetune created (server dry run)", "finetune: nothing", "Advice", "default/train", "WouldDecide", "Started", "deployment.apps/pacer created", "deployment.apps/pacer configured"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("the output does not have %q:\n%s", want, output.String())
		}
	}
	runs(t, c, "train")
	record, err := os.ReadFile(filepath.Join(dir, "record.jsonl"))
	if err != nil || !strings.Contains(string(record), `"default/train"`) {
		t.Errorf("recorded %s, %v", record, err)
	}
}

// runs waits until every pod of a job is ready and has a plan.
func runs(t *testing.T, c *kubetest.Cluster, name string) {
	t.Helper()
	kubetest.Wait(t, name, func() error {
		j, err := c.Client.BatchV1().Jobs("default").Get(t.Context(), name, meta.GetOptions{})
		switch {
		case err != nil:
			return err
		case *j.Spec.Suspend || j.Status.Ready == nil || *j.Status.Ready != *j.Spec.Parallelism:
			return fmt.Errorf("not ready: %+v", j.Status)
		case j.Spec.Template.Annotations["pacer.dev/plan"] == "":
			return errors.New("no plan")
		}
		return nil
	})
}

// TestE2EKubernetesRights runs pacer as the service account of the manifests: it can do all that it
// does, and read no secret. One that may only read makes a dry run, and no write; advice writes nothing but advice.
func TestE2EKubernetesRights(t *testing.T) {
	c := kubernetesCluster(t)
	kubectl := func(args ...string) {
		t.Helper()
		cmd := exec.Command(kubetest.Program(t, "kubectl"), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	deploy := filepath.Join(moduleDir(t), "scheduler/live/kubernetes/deploy")
	kubectl("delete", "-k", filepath.Join(deploy, "control"), "--ignore-not-found", "--wait=false", "--cascade=background")
	finish(t, c, "pacer-system")
	kubectl("apply", "-k", filepath.Join(deploy, "dry-run"))
	kubectl("apply", "--dry-run=server", "-k", filepath.Join(deploy, "control"))
	kubeconfig := accountConfig(t, c)
	wide := kubetest.Job("wide", 2, 8, map[string]string{"model": "llama3-8b", "batch": "128", "steps": "10000", "plan": "tp=8,dp=2,ga=64"})
	c.Submit(t, wide)
	pacer := func(args ...string) (string, error) {
		cmd := exec.Command(selfAs(t, "pacer"), append([]string{"schedule", "--on", "kubernetes", "--kubeconfig", kubeconfig, "--lease", "pacer-system/pacer"}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := pacer("--dry-run", "--once"); err != nil || !strings.Contains(out, "default/wide") {
		t.Errorf("a dry run with the rights to read: %v\n%s", err, out)
	}
	kubectl("apply", "-k", filepath.Join(deploy, "advise"))
	if out, err := pacer("--advise", "--once"); err != nil || strings.Contains(out, "warning") {
		t.Errorf("advice with its rights: %v\n%s", err, out)
	}
	switch j, err := c.Client.BatchV1().Jobs("default").Get(t.Context(), "wide", meta.GetOptions{}); {
	case err != nil:
		t.Error(err)
	case !strings.HasPrefix(j.Annotations["pacer.dev/advice"], "dp="), j.Annotations["pacer.dev/record"] != "", !*j.Spec.Suspend, j.Generation != 1:
		t.Errorf("after advice: %+v", j)
	}
	kubectl("delete", "-f", filepath.Join(deploy, "advise/advise.yaml"), "--wait=false", "--cascade=background")
	kubectl("apply", "-k", filepath.Join(deploy, "control"))
	if out, err := pacer("--once"); err != nil {
		t.Errorf("with the rights to write: %v\n%s", err, out)
	}
	runs(t, c, "wide")

	client, err := kubetest.Client(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"default", "pacer-system"} {
		if _, err := client.CoreV1().Secrets(namespace).List(t.Context(), meta.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("secrets of %s: %v, want forbidden", namespace, err)
		}
		if err := client.CoreV1().Pods(namespace).Delete(t.Context(), "x", meta.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("deletion of a pod in %s: %v, want forbidden", namespace, err)
		}
	}
}

// TestE2EKubernetesKinds: what pacer advise sets in JobSets, PyTorchJobs and TrainJobs is accepted by a server with their
// schemas, and with the rights of the manifests pacer schedule writes advice on those that are suspended.
func TestE2EKubernetesKinds(t *testing.T) {
	c := kubernetesCluster(t)
	c.InstallKinds(t)
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+t.TempDir(), "PATH="+filepath.Dir(kubetest.Program(t, "kubectl"))+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	const (
		head = `{metadata: {name: big, labels: {pacer.dev/managed: "true"}, annotations: {pacer.dev/model: llama3-8b, pacer.dev/batch: "128"}}, `
		pod  = `{spec: {containers: [{name: pytorch, image: i, resources: {requests: {cpu: 16}, limits: {nvidia.com/gpu: 8}}}], restartPolicy: Never}}`
	)
	kinds := map[string]string{
		"jobset":     `apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {suspend: true, replicatedJobs: [{name: w, template: {spec: {completionMode: Indexed, parallelism: 2, completions: 2, template: ` + pod + `}}}]}}`,
		"pytorchjob": `apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {nprocPerNode: "8", runPolicy: {suspend: true}, pytorchReplicaSpecs: {Master: {template: ` + pod + `}, Worker: {replicas: 1, template: ` + pod + `}}}}`,
		"trainjob":   `apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {suspend: true, runtimeRef: {name: torch}, trainer: {numNodes: 2, resourcesPerNode: {requests: {cpu: 16}, limits: {nvidia.com/gpu: 8}}}}}`,
	}
	dir := t.TempDir()
	for kind, text := range kinds {
		file := filepath.Join(dir, kind+".yaml")
		spectest.WriteFile(t, file, []byte("---\n"+head+text+"\n"), 0o644)
		for _, most := range []string{"4", "16"} { // less, and with other numbers of pods and devices
			out := run(selfAs(t, "pacer"), "advise", "-a", "h100", "--timeout", "1m", "--set", "--per-node", "4", "--max-devices", most, "--", "kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", file)
			if !strings.Contains(out, "/big created (server dry run)") || !strings.Contains(out, "pacer: best: "+most+" devices") {
				t.Errorf("%s with at most %s devices:\n%s", kind, most, out)
			}
		}
		run("kubectl", "apply", "-f", file)
	}
	deploy := filepath.Join(moduleDir(t), "scheduler/live/kubernetes/deploy/advise")
	run("kubectl", "delete", "-k", deploy, "--ignore-not-found", "--wait=false", "--cascade=background")
	finish(t, c, "pacer-system")
	run("kubectl", "apply", "-k", deploy)
	run(selfAs(t, "pacer"), "schedule", "--on", "kubernetes", "--policy", "rubick", "--kubeconfig", accountConfig(t, c), "--advise", "--once")
	for kind := range kinds {
		if out := run("kubectl", "get", kind, "big", "-o", `jsonpath={.metadata.annotations.pacer\.dev/advice} {.metadata.generation}`); !regexp.MustCompile(`^(dp=\S+ on \S+|nothing) 1$`).MatchString(out) {
			t.Errorf("%s: advice and generation %q", kind, out)
		}
		run("kubectl", "delete", kind, "big", "--cascade=background")
	}
	run("kubectl", "delete", "-k", deploy, "--wait=false", "--cascade=background")
	finish(t, c, "pacer-system")
}

// finish removes the finalizer of a namespace, which no controller does here, and waits until it is gone.
func finish(t *testing.T, c *kubetest.Cluster, namespace string) {
	t.Helper()
	kubetest.Wait(t, namespace, func() error {
		n, err := c.Client.CoreV1().Namespaces().Get(t.Context(), namespace, meta.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		n.Spec.Finalizers = nil
		if _, err := c.Client.CoreV1().Namespaces().Finalize(t.Context(), n, meta.UpdateOptions{}); err != nil {
			return err
		}
		return errors.New("not gone yet")
	})
}

// accountConfig returns a kubeconfig of the service account of the manifests.
func accountConfig(t *testing.T, c *kubetest.Cluster) string {
	t.Helper()
	token, err := c.Client.CoreV1().ServiceAccounts("pacer-system").CreateToken(context.Background(), "pacer", &auth.TokenRequest{}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
