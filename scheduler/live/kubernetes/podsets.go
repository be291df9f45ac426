package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// PlanVariable is the environment variable of a TrainJob with the plan: its pods have no annotation of their own.
const PlanVariable = "PACER_PLAN"

// kind is a kind of objects that train in pods with devices.
type kind struct {
	apiVersion, name string
	// suspend is the field that suspends it; nil for a Job, which pacer starts and stops itself.
	suspend []string
	// read returns the pods with devices of the field spec of an object.
	read func(fields object) (*podSets, error)
}

// kinds are what a manifest may have. The fields are those of Kubernetes 1.36, JobSet 0.12, Kubeflow Training Operator 1.9
// and Kubeflow Trainer 2.3.
var kinds = []kind{
	{"batch/v1", "Job", nil, jobPods},
	{"jobset.x-k8s.io/v1alpha2", "JobSet", []string{"spec", "suspend"}, jobSetPods},
	{"kubeflow.org/v1", "PyTorchJob", []string{"spec", "runPolicy", "suspend"}, pytorchJobPods},
	{"trainer.kubeflow.org/v1alpha1", "TrainJob", []string{"spec", "suspend"}, trainJobPods},
}

// podSets are the pods of an object that have devices, all with equally many.
type podSets struct {
	sets []podSet
	// setPods changes the number of all pods, and what else says how many devices each has.
	setPods func(pods, devices int) error
	// setPlan makes the plan known to processes.
	setPlan func(plan string) error
}

// podSet are equal pods.
type podSet struct {
	count        int
	container    core.Container // that with devices
	resource     core.ResourceName
	devices      int
	nodeSelector map[string]string
	resources    object // of the container, as the object has them
	template     object // of the pods; nil if the object has none
}

const mostPods = 1 << 16 // of one object

// errNoDevices is the error of an object with pods that request no device.
var errNoDevices = fmt.Errorf("no container has a limit of %s or another device", DeviceResources[0])

// pods returns the number of pods, which is at least 1, and the devices of each.
func (p *podSets) pods() (n, devices int) {
	for _, s := range p.sets {
		n += s.count
	}
	return n, p.sets[0].devices
}

// request returns what the pods request.
func (p *podSets) request() requested {
	n, devices := p.pods()
	requests := p.sets[0].container.Resources.Requests
	return requested{n * devices, hostOf(requests, devices)}
}

// check returns an error of pods that cannot be one request.
func (p *podSets) check() error {
	if len(p.sets) == 0 {
		return errNoDevices
	}
	if n, _ := p.pods(); n < 1 || n > mostPods {
		return fmt.Errorf("the number of pods is %d, want 1 to %d", n, mostPods)
	}
	for _, s := range p.sets {
		if s.devices != p.sets[0].devices || s.resource != p.sets[0].resource {
			return fmt.Errorf("some pods have %d of %s, others %d of %s, want equal ones", p.sets[0].devices, p.sets[0].resource, s.devices, s.resource)
		}
	}
	return nil
}

// setResources gives each pod a number of devices, and of the host what was requested for each device.
func (p *podSets) setResources(devices int, host spec.Host) {
	for i := range p.sets {
		s := &p.sets[i]
		for list, values := range resources(&s.container, s.resource, devices, host) {
			was := child(s.resources, list)
			for name, v := range values.(object) {
				was[name] = v
			}
		}
	}
}

// newPodSet reads a pod template. Without devices its error is errNoDevices.
func newPodSet(template object, count int) (podSet, error) {
	var typed core.PodTemplateSpec
	if err := decode(template, &typed); err != nil {
		return podSet{}, err
	}
	index, resource, devices, err := container(&typed.Spec)
	if err != nil {
		return podSet{}, err
	}
	containers, _ := at(template, "spec")["containers"].([]any)
	of := containers[index].(object)
	return podSet{count, typed.Spec.Containers[index], resource, devices, typed.Spec.NodeSelector, child(of, "resources"), template}, nil
}

// annotatePods is a setPlan: an annotation of the pods, which their processes read by the downward API.
func (p *podSets) annotatePods(plan string) error {
	for _, s := range p.sets {
		child(s.template, "metadata", "annotations")[PlanAnnotation] = plan
	}
	return nil
}

func jobPods(fields object) (*podSets, error) {
	count, err := number(fields, "parallelism")
	if err != nil {
		return nil, err
	}
	set, err := newPodSet(at(fields, "template"), count)
	if err != nil {
		return nil, err
	}
	p := &podSets{sets: []podSet{set}, setPods: func(pods, _ int) error {
		fields["parallelism"], fields["completions"] = int64(pods), int64(pods)
		return nil
	}}
	p.setPlan = p.annotatePods
	return p, nil
}

// jobSetPods reads a JobSet: one of its replicated jobs has devices.
func jobSetPods(fields object) (*podSets, error) {
	p := &podSets{}
	p.setPlan = p.annotatePods
	jobs, _ := fields["replicatedJobs"].([]any)
	for i := range jobs {
		job, _ := jobs[i].(object)
		of := at(job, "template", "spec")
		replicas, err := number(job, "replicas")
		parallelism, err2 := number(of, "parallelism")
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("replicated job %d: %w", i+1, err)
		}
		set, err := newPodSet(at(of, "template"), replicas*parallelism)
		if errors.Is(err, errNoDevices) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("replicated job %d: %w", i+1, err)
		}
		if p.sets = append(p.sets, set); len(p.sets) > 1 {
			return nil, errors.New("two replicated jobs request devices, want one")
		}
		p.setPods = func(pods, _ int) error {
			switch {
			case replicas == 1:
				of["parallelism"], of["completions"] = int64(pods), int64(pods)
			case parallelism == 1:
				job["replicas"] = int64(pods)
			default:
				return fmt.Errorf("%d replicas of %d pods, want 1 of either to change the number of pods", replicas, parallelism)
			}
			return nil
		}
	}
	return p, nil
}

// pytorchJobPods reads a PyTorchJob: a master, which is one pod, and workers. Either may be missing.
func pytorchJobPods(fields object) (*podSets, error) {
	p := &podSets{}
	p.setPlan = p.annotatePods
	replicas := at(fields, "pytorchReplicaSpecs")
	for _, role := range []string{"Master", "Worker"} {
		if replicas[role] == nil {
			continue
		}
		of := at(replicas, role)
		count, err := number(of, "replicas")
		var set podSet
		if err == nil {
			set, err = newPodSet(at(of, "template"), count)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", role, err)
		}
		p.sets = append(p.sets, set)
	}
	p.setPods = func(pods, devices int) error {
		if fields["elasticPolicy"] != nil {
			return errors.New("elasticPolicy changes the number of workers, so it is not set")
		}
		workers := int64(pods)
		if master := at(replicas, "Master"); master != nil {
			workers--
			if replicas["Worker"] == nil && workers > 0 {
				same := runtime.DeepCopyJSON(master)
				set, err := newPodSet(at(same, "template"), 0)
				if err != nil {
					return err
				}
				p.sets, replicas["Worker"] = append(p.sets, set), same
			}
		}
		if workers == 0 {
			delete(replicas, "Worker")
		} else {
			at(replicas, "Worker")["replicas"] = workers
		}
		if text, ok := fields["nprocPerNode"].(string); ok {
			if _, err := strconv.Atoi(text); err == nil { // not auto or gpu
				fields["nprocPerNode"] = strconv.Itoa(devices)
			}
		}
		return nil
	}
	return p, nil
}

// trainJobPods reads a TrainJob. Its runtime has the pod template: only what the TrainJob says itself counts.
func trainJobPods(fields object) (*podSets, error) {
	trainer := at(fields, "trainer")
	var typed struct {
		Command, Args    []string
		ResourcesPerNode core.ResourceRequirements
	}
	if err := decode(trainer, &typed); err != nil {
		return nil, err
	}
	of := core.Container{Name: "trainer", Command: typed.Command, Args: typed.Args, Resources: typed.ResourcesPerNode}
	_, resource, devices, err := container(&core.PodSpec{Containers: []core.Container{of}})
	if err != nil {
		return nil, err
	}
	if trainer["numNodes"] == nil {
		return nil, errors.New("trainer.numNodes is missing: the runtime decides how many pods there are")
	}
	count, err := number(trainer, "numNodes")
	if err != nil {
		return nil, err
	}
	set := podSet{count: count, container: of, resource: resource, devices: devices, resources: at(trainer, "resourcesPerNode"), nodeSelector: selectors(fields, map[string]string{})}
	return &podSets{
		sets: []podSet{set},
		setPods: func(pods, devices int) error {
			trainer["numNodes"] = int64(pods)
			if trainer["numProcPerNode"] != nil {
				trainer["numProcPerNode"] = int64(devices)
			}
			return nil
		},
		setPlan: func(plan string) error {
			env, ok := trainer["env"].([]any)
			if !ok && trainer["env"] != nil {
				return errors.New("trainer.env is no list")
			}
			for _, v := range env {
				if v, ok := v.(object); ok && v["name"] == PlanVariable {
					delete(v, "valueFrom")
					v["value"] = plan
					return nil
				}
			}
			trainer["env"] = append(env, object{"name": PlanVariable, "value": plan})
			return nil
		},
	}, nil
}

// selectors adds all node selectors within a value to out: where a TrainJob has them depends on the release of Trainer.
func selectors(v any, out map[string]string) map[string]string {
	switch v := v.(type) {
	case object:
		for name, v := range v {
			if is, ok := v.(object); ok && name == "nodeSelector" {
				for label, value := range is {
					out[label] = fmt.Sprint(value)
				}
				continue
			}
			selectors(v, out)
		}
	case []any:
		for _, v := range v {
			selectors(v, out)
		}
	}
	return out
}

// at returns the object in nested fields, nil if there is none.
func at(o object, path ...string) object {
	for _, name := range path {
		o, _ = o[name].(object)
	}
	return o
}

// child returns the object in nested fields. It makes those that are missing or no objects.
func child(o object, path ...string) object {
	for _, name := range path {
		next, ok := o[name].(object)
		if !ok {
			next = object{}
			o[name] = next
		}
		o = next
	}
	return o
}

// number returns a whole number of a field, 1 without the field.
func number(o object, name string) (int, error) {
	v, ok := o[name]
	if !ok || v == nil {
		return 1, nil
	}
	n, ok := v.(int64)
	if !ok || n < 0 || n > mostPods {
		return 0, fmt.Errorf("%s is %v, want a whole number from 0 to %d", name, v, mostPods)
	}
	return int(n), nil
}

// decode reads an object into a typed value.
func decode(from object, into any) error {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}
