package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// TestE2EKueueRights answers a workload as the service account of the manifests, with the plan of the planner. The server has
// the schemas of Kueue; the test takes the part of its controller.
func TestE2EKueueRights(t *testing.T) {
	c := kubernetesCluster(t)
	c.InstallKueue(t)
	deploy := filepath.Join(moduleDir(t), "scheduler/live/kubernetes/deploy/kueue")
	c.Kubectl(t, "", "delete", "-k", deploy, "--ignore-not-found", "--wait=false", "--cascade=background")
	finish(t, c, "pacer-system")
	c.Kubectl(t, "", "apply", "-k", deploy)
	kubeconfig := accountConfig(t, c)
	var out strings.Builder
	pacer := exec.Command(selfAs(t, "pacer"), "--data", t.TempDir(), "schedule", "--on", "kueue", "--kubeconfig", kubeconfig, "--lease", "pacer-system/pacer-admission")
	pacer.Stdout, pacer.Stderr = &out, &out
	if err := pacer.Start(); err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: h100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: train, namespace: default}
spec:
  podSets:
    - name: main
      count: 2
      template:
        metadata: {annotations: {pacer.dev/model: llama3-8b, pacer.dev/batch: "128"}}
        spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]}
`, "apply", "-f", "-")
	c.Kubectl(t, "", "patch", "workload", "train", "--subresource=status", "--type=merge", "-p", `{"status": {
		"conditions": [{"type": "QuotaReserved", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
		"admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": 2, "flavors": {"nvidia.com/gpu": "h100"}}]},
		"admissionChecks": [{"name": "pacer", "state": "Pending", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	state := ""
	kubetest.Wait(t, "answer", func() error {
		state = c.Kubectl(t, "", "get", "workload", "train", "-o", "jsonpath={.status.admissionChecks[0]}")
		if strings.Contains(state, `"Pending"`) {
			return errors.New(state)
		}
		return nil
	})
	_ = pacer.Process.Signal(os.Interrupt)
	if err := pacer.Wait(); err != nil {
		t.Errorf("pacer: %v\n%s", err, out.String())
	}
	if !strings.Contains(state, `"state":"Ready"`) || !strings.Contains(state, `"pacer.dev/plan":"dp=`) || !strings.Contains(state, "on 16 x h100, ") {
		t.Errorf("answered %s", state)
	}
	if !strings.Contains(out.String(), "workload default/train Ready") || strings.Contains(out.String(), "forbidden") {
		t.Errorf("pacer printed\n%s", out.String())
	}
	client, err := kubetest.Client(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets("default").List(t.Context(), meta.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("secrets: %v, want forbidden", err)
	}
	c.Kubectl(t, "", "delete", "-k", deploy, "--wait=false", "--cascade=background")
	finish(t, c, "pacer-system")
}

// TestKueueFlags: flags of policies have no meaning where Kueue decides.
func TestKueueFlags(t *testing.T) {
	out, err := exec.Command(selfAs(t, "pacer"), "schedule", "--on", "kueue", "--policy", "rubick").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--policy has no meaning with --on kueue") {
		t.Errorf("%v\n%s", err, out)
	}
}
