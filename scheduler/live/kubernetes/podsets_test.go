package kubernetes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

const podOfFour = `{spec: {nodeSelector: {nvidia.com/gpu.product: H100}, containers: [{name: log}, {name: c, image: i, command: [torchrun, t.py], ` +
	`resources: {requests: {cpu: 8, memory: 32Gi}, limits: {nvidia.com/gpu: 4, memory: 32Gi, ephemeral-storage: 1Gi}}}]}}`

// podOfTwo is podOfFour with 2 devices and the plan.
const podOfTwo = `{metadata: {annotations: {pacer.dev/plan: "dp=6,tp=1,pp=1,mb=1,ga=1"}}, spec: {nodeSelector: {nvidia.com/gpu.product: H100}, containers: [{name: log}, {name: c, image: i, command: [torchrun, t.py], ` +
	`resources: {requests: {nvidia.com/gpu: 2, cpu: "4", memory: 16Gi}, limits: {nvidia.com/gpu: 2, memory: 16Gi, ephemeral-storage: 1Gi}}}]}}`

// TestKinds: of each kind the request is read, and 3 pods of 2 devices are set, and nothing else.
func TestKinds(t *testing.T) {
	plan := spec.Plan{DP: 6, MicroBatch: 1, AccumSteps: 1}
	for _, c := range []struct {
		name, kind, fields string
		pods               int
		after              string
	}{
		{"job", "batch/v1/Job", "{completionMode: Indexed, completions: 2, parallelism: 2, template: " + podOfFour + "}", 2,
			"{completionMode: Indexed, completions: 3, parallelism: 3, template: " + podOfTwo + "}"},
		{"job set", "jobset.x-k8s.io/v1alpha2/JobSet",
			"{replicatedJobs: [{name: loader, template: {spec: {template: {spec: {containers: [{name: l}]}}}}}, {name: w, template: {spec: {parallelism: 2, completions: 2, template: " + podOfFour + "}}}]}", 2,
			"{replicatedJobs: [{name: loader, template: {spec: {template: {spec: {containers: [{name: l}]}}}}}, {name: w, template: {spec: {parallelism: 3, completions: 3, template: " + podOfTwo + "}}}]}"},
		{"job set of jobs", "jobset.x-k8s.io/v1alpha2/JobSet",
			"{replicatedJobs: [{name: w, replicas: 5, template: {spec: {template: " + podOfFour + "}}}]}", 5,
			"{replicatedJobs: [{name: w, replicas: 3, template: {spec: {template: " + podOfTwo + "}}}]}"},
		{"master and workers", "kubeflow.org/v1/PyTorchJob",
			"{nprocPerNode: '4', pytorchReplicaSpecs: {Master: {replicas: 1, template: " + podOfFour + "}, Worker: {replicas: 3, template: " + podOfFour + "}}}", 4,
			"{nprocPerNode: '2', pytorchReplicaSpecs: {Master: {replicas: 1, template: " + podOfTwo + "}, Worker: {replicas: 2, template: " + podOfTwo + "}}}"},
		{"master alone", "kubeflow.org/v1/PyTorchJob",
			"{nprocPerNode: auto, pytorchReplicaSpecs: {Master: {restartPolicy: Never, template: " + podOfFour + "}}}", 1,
			"{nprocPerNode: auto, pytorchReplicaSpecs: {Master: {restartPolicy: Never, template: " + podOfTwo + "}, Worker: {restartPolicy: Never, replicas: 2, template: " + podOfTwo + "}}}"},
		{"no workers", "kubeflow.org/v1/PyTorchJob",
			"{pytorchReplicaSpecs: {Master: {template: " + podOfFour + "}, Worker: {replicas: 0, template: " + podOfFour + "}}}", 1,
			"{pytorchReplicaSpecs: {Master: {template: " + podOfTwo + "}, Worker: {replicas: 2, template: " + podOfTwo + "}}}"},
		{"workers", "kubeflow.org/v1/PyTorchJob", "{pytorchReplicaSpecs: {Worker: {template: " + podOfFour + "}}}", 1,
			"{pytorchReplicaSpecs: {Worker: {replicas: 3, template: " + podOfTwo + "}}}"},
		{"train job", "trainer.kubeflow.org/v1alpha1/TrainJob",
			`{runtimeRef: {name: torch}, podTemplateOverrides: [{spec: {nodeSelector: {nvidia.com/gpu.product: H100}}}], trainer: {numNodes: 2, numProcPerNode: 4, command: [torchrun, t.py], env: [{name: A, value: b}], ` +
				`resourcesPerNode: {requests: {cpu: 8, memory: 32Gi}, limits: {nvidia.com/gpu: 4, memory: 32Gi}}}}`, 2,
			`{runtimeRef: {name: torch}, podTemplateOverrides: [{spec: {nodeSelector: {nvidia.com/gpu.product: H100}}}], trainer: {numNodes: 3, numProcPerNode: 2, command: [torchrun, t.py], env: [{name: A, value: b}, {name: PACER_PLAN, value: "dp=6,tp=1,pp=1,mb=1,ga=1"}], ` +
				`resourcesPerNode: {requests: {nvidia.com/gpu: 2, cpu: "4", memory: 16Gi}, limits: {nvidia.com/gpu: 2, memory: 16Gi}}}}`},
		{"train job with a plan", "trainer.kubeflow.org/v1alpha1/TrainJob",
			"{trainer: {numNodes: 2, command: [torchrun, t.py], env: [{name: A, value: b}, {name: PACER_PLAN, valueFrom: {configMapKeyRef: {name: m, key: k}}}], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}}", 2,
			"{trainer: {numNodes: 3, command: [torchrun, t.py], env: [{name: A, value: b}, {name: PACER_PLAN, value: 'dp=6,tp=1,pp=1,mb=1,ga=1'}], resourcesPerNode: {requests: {nvidia.com/gpu: 2}, limits: {nvidia.com/gpu: 2}}}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := strings.LastIndex(c.kind, "/")
			document := func(annotations, fields string) string {
				return "{apiVersion: " + c.kind[:at] + ", kind: " + c.kind[at+1:] + ", metadata: {name: x, annotations: {" + annotations + "}}, spec: " + fields + "}\n"
			}
			m, err := ReadManifest([]byte(document("pacer.dev/model: a, pacer.dev/batch: '64'", c.fields)), testOptions)
			if err != nil || len(m.Jobs) != 1 {
				t.Fatalf("%+v, %v", m, err)
			}
			s := &m.Jobs[0]
			if s.Err != nil || s.Pods != c.pods || s.Job.Devices != 4*c.pods || s.Job.GlobalBatch != 64 || strings.Join(s.Command, " ") != "torchrun t.py" {
				t.Errorf("%+v", s)
			}
			if want := "H100"; strings.Contains(c.fields, want) && s.Job.Accelerator != want {
				t.Errorf("accelerator %q, want %q", s.Job.Accelerator, want)
			}
			if err := m.Set(s, spec.NewShape(2, 2, 2), plan); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, document("pacer.dev/model: a, pacer.dev/batch: '64', pacer.dev/plan: 'dp=6,tp=1,pp=1,mb=1,ga=1'", c.after)), parsed(t, m.String())); diff != "" {
				t.Errorf("after Set (-want +got):\n%s", diff)
			}
			again, err := ReadManifest([]byte(m.String()), testOptions)
			if err != nil || again.Jobs[0].Err != nil || again.Jobs[0].Pods != 3 || again.Jobs[0].Job.Devices != 6 || again.Jobs[0].Job.Plan.String() != plan.String() {
				t.Errorf("read again: %+v, %v", again.Jobs, err)
			}
		})
	}
}

func parsed(t *testing.T, text string) (out any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// TestKindsFaults: what cannot be used, or set, is named.
func TestKindsFaults(t *testing.T) {
	const pod = "{spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]}}"
	for _, c := range []struct{ kind, fields, read, set string }{
		{"jobset.x-k8s.io/v1alpha2, kind: JobSet", "{replicatedJobs: [{template: {spec: {template: " + pod + "}}}, {template: {spec: {template: " + pod + "}}}]}", "two replicated jobs request devices", ""},
		{"jobset.x-k8s.io/v1alpha2, kind: JobSet", "{replicatedJobs: [{replicas: x}]}", "replicated job 1: replicas is x", ""},
		{"jobset.x-k8s.io/v1alpha2, kind: JobSet", "{replicatedJobs: 7}", "no container has a limit", ""},
		{"jobset.x-k8s.io/v1alpha2, kind: JobSet", "{replicatedJobs: [{replicas: 2, template: {spec: {parallelism: 2, template: " + pod + "}}}]}", "", "2 replicas of 2 pods"},
		{"kubeflow.org/v1, kind: PyTorchJob", "{pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: c}]}}}}}", "Master: no container", ""},
		{"kubeflow.org/v1, kind: PyTorchJob", "{pytorchReplicaSpecs: {Worker: {replicas: 0, template: " + pod + "}}}", "number of pods is 0", ""},
		{"kubeflow.org/v1, kind: PyTorchJob", "{pytorchReplicaSpecs: {Master: {template: " + pod + "}, Worker: {template: " + strings.Replace(pod, "4", "2", 1) + "}}}", "some pods have 4", ""},
		{"kubeflow.org/v1, kind: PyTorchJob", "{pytorchReplicaSpecs: {Master: {template: " + pod + "}, Worker: {template: " + strings.Replace(pod, "nvidia", "amd", 1) + "}}}", "others 4 of amd.com/gpu", ""},
		{"jobset.x-k8s.io/v1alpha2, kind: JobSet", "{replicatedJobs: [{replicas: 65536, template: {spec: {parallelism: 2, template: " + pod + "}}}]}", "number of pods is 131072", ""},
		{"kubeflow.org/v1, kind: PyTorchJob", "{elasticPolicy: {maxReplicas: 3}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: " + pod + "}}}", "", "elasticPolicy"},
		{"trainer.kubeflow.org/v1alpha1, kind: TrainJob", "{trainer: {resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}}", "numNodes is missing", ""},
		{"trainer.kubeflow.org/v1alpha1, kind: TrainJob", "{trainer: {numNodes: 2, env: 7, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}}", "", "env is no list"},
		{"trainer.kubeflow.org/v1alpha1, kind: TrainJob", "{runtimeRef: {name: torch}}", "no container has a limit", ""},
	} {
		text := "{apiVersion: " + c.kind + ", metadata: {name: x, annotations: {pacer.dev/model: a}}, spec: " + c.fields + "}\n"
		m, err := ReadManifest([]byte(text), testOptions)
		if err != nil || len(m.Jobs) != 1 {
			t.Errorf("%s: %+v, %v", text, m, err)
			continue
		}
		s := &m.Jobs[0]
		if c.read != "" && (s.Err == nil || !strings.Contains(s.Err.Error(), c.read)) {
			t.Errorf("%s: %v, want %q", text, s.Err, c.read)
		}
		err = m.Set(s, spec.NewShape(2, 2, 2), spec.Plan{DP: 6, MicroBatch: 1, AccumSteps: 1})
		if want := c.read + c.set; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: set: %v, want %q", text, err, want)
		}
		if m.String() != text {
			t.Errorf("%s: was changed to\n%s", text, m)
		}
	}
}
