package kubetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const device = core.ResourceName("nvidia.com/gpu")

// Reset deletes all jobs, pods, nodes and leases of pacers that were killed, and waits until they are gone.
func (c *Cluster) Reset(t testing.TB) {
	t.Helper()
	ctx, all, now := t.Context(), meta.ListOptions{}, int64(0)
	background := meta.DeletePropagationBackground
	Wait(t, "reset", func() error {
		jobs, err := c.Client.BatchV1().Jobs("").List(ctx, all)
		if err != nil {
			return err
		}
		pods, err := c.Client.CoreV1().Pods("").List(ctx, all)
		if err != nil {
			return err
		}
		for i := range jobs.Items {
			j := &jobs.Items[i]
			_ = c.Client.BatchV1().Jobs(j.Namespace).Delete(ctx, j.Name, meta.DeleteOptions{PropagationPolicy: &background})
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			_ = c.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, meta.DeleteOptions{GracePeriodSeconds: &now})
		}
		if n := len(jobs.Items) + len(pods.Items); n > 0 {
			return fmt.Errorf("%d jobs and pods are left", n)
		}
		if err := c.Client.CoordinationV1().Leases(core.NamespaceDefault).DeleteCollection(ctx, meta.DeleteOptions{}, all); err != nil {
			return err
		}
		return c.Client.CoreV1().Nodes().DeleteCollection(ctx, meta.DeleteOptions{}, all)
	})
}

// AddNodes adds ready nodes n0, n1 and so on with equal numbers of devices.
func (c *Cluster) AddNodes(t testing.TB, n, devices int) {
	t.Helper()
	c.addNodes(t, "n", "NVIDIA-A100-SXM4-80GB", n, devices)
}

// AddNodesOf adds ready nodes of an accelerator, named by it and a number, with equal numbers of devices.
func (c *Cluster) AddNodesOf(t testing.TB, accelerator string, n, devices int) {
	t.Helper()
	c.addNodes(t, accelerator, accelerator, n, devices)
}

func (c *Cluster) addNodes(t testing.TB, prefix, accelerator string, n, devices int) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("%s%d", prefix, i)
		node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{
			core.LabelHostname: name, "nvidia.com/gpu.product": accelerator}}}
		node, err := c.Client.CoreV1().Nodes().Create(t.Context(), node, meta.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Status = NodeStatus(devices, true)
		if _, err := c.Client.CoreV1().Nodes().UpdateStatus(t.Context(), node, meta.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// NodeStatus is the status of a node with 12 CPUs and 100 GiB for each device.
func NodeStatus(devices int, ready bool) core.NodeStatus {
	has := core.ResourceList{
		device:              *resource.NewQuantity(int64(devices), resource.DecimalSI),
		core.ResourceCPU:    *resource.NewQuantity(12*int64(devices), resource.DecimalSI),
		core.ResourceMemory: *resource.NewQuantity(100*int64(devices)<<30, resource.BinarySI),
		core.ResourcePods:   resource.MustParse("110"),
	}
	status := core.ConditionTrue
	if !ready {
		status = core.ConditionUnknown
	}
	return core.NodeStatus{Capacity: has, Allocatable: has, Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: status, Reason: "Test"}}}
}

// Job returns a suspended job in the default namespace with some pods, which pacer schedules.
// Its annotations are those of pacer, without the prefix. A command is run as a process. It is complete once a pod succeeds.
func Job(name string, pods, devices int, annotations map[string]string, command ...string) *batch.Job {
	number, suspended, indexed, grace, one := int32(pods), true, batch.IndexedCompletion, int64(2), int32(1)
	j := &batch.Job{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"pacer.dev/managed": "true"}, Annotations: map[string]string{}}}
	for key, value := range annotations {
		j.Annotations["pacer.dev/"+key] = value
	}
	want := resource.NewQuantity(int64(devices), resource.DecimalSI)
	variable := func(annotation string) *core.EnvVarSource {
		return &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotation + "']"}}
	}
	j.Spec = batch.JobSpec{Suspend: &suspended, CompletionMode: &indexed, Completions: &number, Parallelism: &number,
		SuccessPolicy: &batch.SuccessPolicy{Rules: []batch.SuccessPolicyRule{{SucceededCount: &one}}},
		Template: core.PodTemplateSpec{Spec: core.PodSpec{RestartPolicy: core.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			Containers: []core.Container{{Name: "train", Image: "train", Command: command,
				Env:       []core.EnvVar{{Name: "PACER_PLAN", ValueFrom: variable("pacer.dev/plan")}},
				Resources: core.ResourceRequirements{Limits: core.ResourceList{device: *want}}}}}}}
	if len(command) > 0 {
		j.Spec.Template.Annotations = map[string]string{"kubemin/run": "true"}
	}
	return j
}

// Submit creates a job.
func (c *Cluster) Submit(t testing.TB, j *batch.Job) {
	t.Helper()
	if _, err := c.Client.BatchV1().Jobs(j.Namespace).Create(t.Context(), j, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// InstallKinds makes the cluster serve JobSets, PyTorchJobs and TrainJobs until the end of the test. Their controllers do
// not run.
func (c *Cluster) InstallKinds(t testing.TB) { c.install(t, "crds") }

// install makes the cluster serve the kinds of a directory of the engines until the end of the test.
func (c *Cluster) install(t testing.TB, dir string) {
	t.Helper()
	crds := filepath.Join(filepath.Dir(Program(t, "kubectl")), dir)
	c.Kubectl(t, "", "apply", "--server-side", "-f", crds)
	t.Cleanup(func() { c.Kubectl(t, "", "delete", "-f", crds, "--timeout=1m") }) // and all objects
	c.Kubectl(t, "", "wait", "--recursive=false", "--for=condition=Established", "--timeout=1m", "-f", crds)
}

// Kubectl runs kubectl as an administrator, and returns what it prints.
func (c *Cluster) Kubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(Program(t, "kubectl"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+t.TempDir()) // it caches there which kinds there are
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}
