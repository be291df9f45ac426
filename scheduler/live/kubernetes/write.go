package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

type object = map[string]any

var errReadOnly = errors.New("kubernetes: the engine is read-only")

// Record implements live.Cluster.
func (c *Cluster) Record(ctx context.Context, j *live.Job, r live.Record) error {
	p, err := recorded(j, r)
	if err != nil {
		return err
	}
	return c.patch(ctx, j, object{"metadata": object{"annotations": p}})
}

// Stop implements live.Cluster: it suspends the job. Its pods get SIGTERM and their grace period.
func (c *Cluster) Stop(ctx context.Context, j *live.Job) error {
	if j.Phase == live.Held || j.Phase == live.Stopping {
		return nil
	}
	err := c.patch(ctx, j, object{"spec": object{"suspend": true}})
	if was, ok := j.Ref.(*batch.Job); ok && err == nil {
		c.await(was.UID, 0)
	}
	return err
}

// Start implements live.Cluster.
func (c *Cluster) Start(ctx context.Context, j *live.Job, r live.Record) error {
	p, err := c.starting(j, r)
	if err != nil {
		return fmt.Errorf("kubernetes: job %s: %w", j.Spec.ID, err)
	}
	was := j.Ref.(*batch.Job)
	if len(r.RunSlots) > 1 { // before the patch: pods may be placed before its answer arrives
		c.await(was.UID, len(r.RunSlots))
	}
	if err := c.patch(ctx, j, p); err != nil {
		c.await(was.UID, 0)
		if apierrors.IsInvalid(err) {
			err = fmt.Errorf("%w (servers before 1.36 do not change the devices of a suspended job, or the pods of one that has run)", err)
		}
		return err
	}
	return nil
}

// recorded returns the annotations of a job with record r.
func recorded(j *live.Job, r live.Record) (object, error) {
	request, err := json.Marshal(requested{j.Spec.Devices, j.Spec.Host})
	if err != nil {
		return nil, err
	}
	return object{RecordAnnotation: r.String(), RequestedAnnotation: string(request)}, nil
}

// starting returns the patch that starts a job: one pod on each node of r, with equal numbers of
// devices.
func (c *Cluster) starting(j *live.Job, r live.Record) (object, error) {
	was, ok := j.Ref.(*batch.Job)
	if !ok {
		return nil, errors.New("was not observed by this engine")
	}
	nodes := slices.Sorted(maps.Keys(r.RunSlots))
	if len(nodes) == 0 {
		return nil, errors.New("is started on no devices")
	}
	devices := r.RunSlots[nodes[0]]
	for _, n := range nodes {
		if r.RunSlots[n] != devices {
			return nil, fmt.Errorf("devices %s are not equally many on each node", r.RunSlots)
		}
	}
	index, resource, before, err := container(&was.Spec.Template.Spec)
	if err != nil {
		return nil, err
	}
	var selector any // of the only node; nil takes that of an earlier run away
	gates := []object{{"name": Gate}}
	if len(nodes) == 1 {
		if selector, err = c.hostnameOf(nodes[0]); err != nil {
			return nil, err
		}
		gates[0]["$patch"] = "delete"
	}
	annotated, err := recorded(j, r)
	if err != nil {
		return nil, err
	}
	template := &was.Spec.Template
	pod := object{
		"nodeSelector":    object{hostname: selector},
		"schedulingGates": gates,
		"containers": []object{{
			"name":      template.Spec.Containers[index].Name,
			"resources": resources(&template.Spec.Containers[index], resource, devices, j.Spec.Host),
		}},
	}
	if init := initContainers(&template.Spec, resource, before, devices); init != nil {
		pod["initContainers"] = init
	}
	return object{
		"metadata": object{"annotations": annotated},
		"spec": object{
			"suspend": false, "parallelism": len(nodes), "completions": len(nodes),
			"template": object{
				"metadata": object{"annotations": object{PlanAnnotation: r.RunPlan, SlotsAnnotation: r.RunSlots.String()}},
				"spec":     pod,
			},
		},
	}, nil
}

// initContainers returns the init containers that request as many devices as the container with devices did, or more than it
// is to get, with those that it gets: the pod would hold theirs.
func initContainers(pod *core.PodSpec, device core.ResourceName, before, now int) (out []object) {
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		if q, ok := c.Resources.Limits[device]; ok && (int(q.Value()) == before || int(q.Value()) > now) {
			n := object{string(device): now}
			out = append(out, object{"name": c.Name, "resources": object{"limits": n, "requests": n}})
		}
	}
	return out
}

// resources returns what a container with a number of devices requests. What it requests of the
// host grows with the devices; a limit keeps its ratio to the request.
func resources(of *core.Container, device core.ResourceName, devices int, host spec.Host) object {
	limits, requests := object{string(device): devices}, object{string(device): devices}
	for name, perDevice := range map[core.ResourceName]int64{core.ResourceCPU: host.MilliCPUs, core.ResourceMemory: host.Bytes} {
		if perDevice == 0 {
			continue
		}
		want := times(perDevice, devices, name == core.ResourceCPU)
		requests[string(name)] = want.String()
		limit, limited := of.Resources.Limits[name]
		was := of.Resources.Requests[name]
		if limited && !was.IsZero() {
			ratio := limit.AsApproximateFloat64() / was.AsApproximateFloat64()
			scaled := times(int64(float64(perDevice)*ratio), devices, name == core.ResourceCPU)
			limits[string(name)] = scaled.String()
		}
	}
	return object{"limits": limits, "requests": requests}
}

// hostnameOf returns the label that a node selector finds a node by.
func (c *Cluster) hostnameOf(node string) (string, error) {
	n, err := c.nodes.Get(node)
	if err != nil {
		return "", err
	}
	return n.Labels[hostname], nil
}

// patch changes a job if it is still as observed, and j with it.
func (c *Cluster) patch(ctx context.Context, j *live.Job, p object) error {
	if c.ReadOnly {
		return errReadOnly
	}
	was, ok := j.Ref.(*batch.Job)
	if !ok {
		return fmt.Errorf("kubernetes: job %s was not observed by this engine", j.Spec.ID)
	}
	m, ok := p["metadata"].(object)
	if !ok {
		m = object{}
		p["metadata"] = m
	}
	m["uid"], m["resourceVersion"] = was.UID, j.Version
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	c.events.begin()
	defer c.events.end()
	now, err := c.client.BatchV1().Jobs(was.Namespace).Patch(ctx, was.Name, types.StrategicMergePatchType, body, meta.PatchOptions{FieldManager: FieldManager})
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("kubernetes: job %s: %w: %w", j.Spec.ID, live.ErrConflict, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("kubernetes: job %s: %w: %w", j.Spec.ID, live.ErrGone, err)
	case err != nil:
		return fmt.Errorf("kubernetes: job %s: %w", j.Spec.ID, err)
	}
	j.Version, j.Ref = now.ResourceVersion, now
	return nil
}
