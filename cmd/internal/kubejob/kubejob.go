//go:build !nokubernetes

package kubejob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/pacer-ml/pacer/profiler/executor"
)

// Cluster submits indexed Jobs and follows them. The name of a Job is the key, in lower case and without '.' and '_'.
type Cluster struct {
	Client    kubernetes.Interface
	Namespace string
	// Template has the image and the volumes of the pods. Their first container runs the command.
	Template core.PodTemplateSpec
	Poll     time.Duration // between two looks at a job, 0 = 2 s
}

var _ executor.Cluster = Cluster{}

// ReadTemplate reads a pod template: a YAML file with metadata and spec of a pod.
func ReadTemplate(file string) (out core.PodTemplateSpec, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return out, fmt.Errorf("kubejob: pod template: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		return out, fmt.Errorf("kubejob: pod template %s: %w", file, err)
	}
	if len(out.Spec.Containers) == 0 || out.Spec.Containers[0].Image == "" {
		return out, fmt.Errorf("kubejob: pod template %s: spec.containers[0].image is missing, want an image with pacer", file)
	}
	return out, nil
}

const keyAnnotation = "pacer.dev/key"

var nameOf = strings.NewReplacer(".", "-", "_", "-")

// Submit implements executor.Cluster. A Job with the key that has ended is deleted first.
func (c Cluster) Submit(ctx context.Context, j executor.Job) (executor.Handle, error) {
	if err := j.Validate(); err != nil {
		return nil, err
	}
	if j.Nodes > 1 && j.Tasks > 0 {
		return nil, fmt.Errorf("kubejob: job %s has %d tasks of %d nodes, want tasks of one node", j.Key, j.Tasks, j.Nodes)
	}
	for {
		now, err := c.get(ctx, j.Key)
		switch {
		case err != nil:
			return nil, err
		case now == nil:
			made, err := c.Client.BatchV1().Jobs(c.Namespace).Create(ctx, c.job(j), meta.CreateOptions{})
			if err == nil {
				return &handle{c, made}, nil
			}
			if !apierrors.IsAlreadyExists(err) {
				return nil, fmt.Errorf("kubejob: job %s: %w", j.Key, err)
			}
		case now.Annotations[keyAnnotation] != j.Key:
			return nil, fmt.Errorf("kubejob: job %s/%s exists, and is not of %s", now.Namespace, now.Name, j.Key)
		case !ended(now) && now.DeletionTimestamp == nil:
			return &handle{c, now}, nil
		case now.DeletionTimestamp == nil:
			if err := (&handle{c, now}).Cancel(ctx); err != nil {
				return nil, err
			}
		}
		if err := c.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// job returns the manifest of a job.
func (c Cluster) job(j executor.Job) *batch.Job {
	n, mode := int32(max(j.Tasks, j.Nodes, 1)), batch.IndexedCompletion
	name := strings.ToLower(nameOf.Replace(j.Key))
	pod := *c.Template.DeepCopy()
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = core.RestartPolicyNever
	}
	run := &pod.Spec.Containers[0]
	run.Command, run.Args, run.WorkingDir = j.Args, nil, j.Dir
	if j.GPUs > 0 {
		if run.Resources.Limits == nil {
			run.Resources.Limits = core.ResourceList{}
		}
		run.Resources.Limits["nvidia.com/gpu"] = *resource.NewQuantity(int64(j.GPUs), resource.DecimalSI)
	}
	out := &batch.Job{ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{keyAnnotation: j.Key}},
		Spec: batch.JobSpec{Completions: &n, Parallelism: &n, CompletionMode: &mode, Template: pod}}
	if j.Nodes > 1 { // all pods begin together or not at all
		spread(&out.Spec.Template.Spec, name)
		run.Env = append(run.Env, core.EnvVar{Name: executor.NodesVar, Value: strconv.Itoa(j.Nodes)},
			field(executor.NodeVar, "metadata.annotations['"+batch.JobCompletionIndexAnnotation+"']"),
			field(executor.AttemptVar, "metadata.labels['"+batch.ControllerUidLabel+"']"))
		out.Spec.Template.Spec.Containers[0] = *run
		out.Spec.BackoffLimit = new(int32)
	}
	if j.Limit > 0 { // since a pod has a node; without one it does not count
		seconds := int64(j.Limit.Seconds() + 0.5)
		out.Spec.Template.Spec.ActiveDeadlineSeconds = &seconds
	}
	return out
}

// field is a variable with a field of the pod.
func field(name, path string) core.EnvVar {
	return core.EnvVar{Name: name, ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: path}}}
}

// spread places each pod of a job on a node of its own.
func spread(pod *core.PodSpec, job string) {
	if pod.Affinity == nil {
		pod.Affinity = &core.Affinity{}
	}
	if pod.Affinity.PodAntiAffinity == nil {
		pod.Affinity.PodAntiAffinity = &core.PodAntiAffinity{}
	}
	apart := &pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*apart = append(*apart, core.PodAffinityTerm{TopologyKey: core.LabelHostname, LabelSelector: &meta.LabelSelector{MatchLabels: map[string]string{batch.JobNameLabel: job}}})
}

// Find implements executor.Cluster.
func (c Cluster) Find(ctx context.Context, key string) (executor.Handle, error) {
	j, err := c.get(ctx, key)
	if err != nil || j == nil || ended(j) || j.Annotations[keyAnnotation] != key {
		return nil, err
	}
	return &handle{c, j}, nil
}

// patience is how long a server may not answer.
const patience = 10 * time.Minute

// get returns the Job of a key, nil if there is none. It asks until the server answers.
func (c Cluster) get(ctx context.Context, key string) (*batch.Job, error) {
	for deadline := time.Now().Add(patience); ; {
		j, err := c.Client.BatchV1().Jobs(c.Namespace).Get(ctx, strings.ToLower(nameOf.Replace(key)), meta.GetOptions{})
		var answer apierrors.APIStatus
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err == nil:
			return j, nil
		case errors.As(err, &answer) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) || time.Now().After(deadline):
			return nil, fmt.Errorf("kubejob: job %s: %w", key, err)
		}
		if err := c.pause(ctx); err != nil {
			return nil, err
		}
	}
}

func (c Cluster) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(cmp.Or(c.Poll, 2*time.Second)):
		return nil
	}
}

// condition returns a condition of a job that is true, nil if it is not.
func condition(j *batch.Job, kind batch.JobConditionType) *batch.JobCondition {
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; c.Type == kind && c.Status == core.ConditionTrue {
			return c
		}
	}
	return nil
}

func ended(j *batch.Job) bool {
	return condition(j, batch.JobComplete) != nil || condition(j, batch.JobFailed) != nil
}

// handle is a Job.
type handle struct {
	c   Cluster
	job *batch.Job
}

// Wait implements executor.Handle. Kubernetes starts pods of lost nodes again itself.
func (h *handle) Wait(ctx context.Context, done func() bool) (executor.JobEnd, error) {
	for {
		if done != nil && done() {
			return executor.JobEnd{}, nil
		}
		j, err := h.c.get(ctx, h.job.Annotations[keyAnnotation])
		switch {
		case err != nil:
			return executor.JobEnd{}, err
		case j == nil || j.UID != h.job.UID:
			return executor.JobEnd{State: executor.JobUnknown, Code: -1}, nil
		case condition(j, batch.JobComplete) != nil:
			return executor.JobEnd{State: executor.JobEnded, Code: 0}, nil
		}
		if condition(j, batch.JobFailed) != nil {
			return executor.JobEnd{State: executor.JobEnded, Code: 1}, nil
		}
		if err := h.c.pause(ctx); err != nil {
			return executor.JobEnd{}, err
		}
	}
}

// Cancel implements executor.Handle.
func (h *handle) Cancel(ctx context.Context) error {
	background := meta.DeletePropagationBackground
	err := h.c.Client.BatchV1().Jobs(h.c.Namespace).Delete(ctx, h.job.Name, meta.DeleteOptions{PropagationPolicy: &background, Preconditions: &meta.Preconditions{UID: &h.job.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("kubejob: job %s: %w", h.job.Name, err)
	}
	return nil
}
