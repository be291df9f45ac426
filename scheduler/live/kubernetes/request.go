package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Annotations of a job. Its owner sets the first ones, pacer the others.
const (
	ModelAnnotation       = "pacer.dev/model"       // a name of the catalog
	BatchAnnotation       = "pacer.dev/batch"       // samples per step
	SeqLenAnnotation      = "pacer.dev/seq"         // tokens per sample
	StepsAnnotation       = "pacer.dev/steps"       // of the whole job
	DurationAnnotation    = "pacer.dev/duration"    // in place of steps, such as "90m"
	AcceleratorAnnotation = "pacer.dev/accelerator" // the only type to run on
	TenantAnnotation      = "pacer.dev/tenant"      // "" = the namespace
	WeightAnnotation      = "pacer.dev/weight"
	GuaranteedAnnotation  = "pacer.dev/guaranteed"    // "true" or "false"
	PausedAnnotation      = "pacer.dev/paused"        // "true": left as it is
	ReleaseAnnotation     = "pacer.dev/release-after" // such as "30m": stopped that long after some of its pods have succeeded, and others run on
	DoneAnnotation        = "pacer.dev/done"          // steps completed, as the job reports

	RecordAnnotation    = "pacer.dev/record"
	RequestedAnnotation = "pacer.dev/requested" // devices and hosts of the job as it was submitted
	// Annotations of the pods, which their processes read by the downward API. PlanAnnotation of a
	// job is the plan to keep, set by its owner.
	PlanAnnotation  = "pacer.dev/plan"
	SlotsAnnotation = "pacer.dev/slots" // such as "n1=8+n2=8"; pod i is on the i-th
)

// DeviceResources are the resources that are counted as devices.
var DeviceResources = []core.ResourceName{"nvidia.com/gpu", "amd.com/gpu", "google.com/tpu"}

// requested is what the pods of a job requested when it was submitted. Starting it changes them.
type requested struct {
	Devices int       `json:"devices"`        // of all pods
	Host    spec.Host `json:"host,omitempty"` // for each device
}

// container returns the index of the container with devices, their resource and number.
func container(pod *core.PodSpec) (index int, name core.ResourceName, devices int, err error) {
	index = -1
	for i := range pod.Containers {
		for _, r := range DeviceResources {
			q, ok := pod.Containers[i].Resources.Limits[r]
			if !ok || q.IsZero() {
				continue
			}
			if index >= 0 {
				return 0, "", 0, fmt.Errorf("containers %q and %q both request devices, want one", pod.Containers[index].Name, pod.Containers[i].Name)
			}
			n, whole := q.AsInt64()
			if !whole || n < 1 || n > 1024 {
				return 0, "", 0, fmt.Errorf("container %q requests %s of %s, want 1 to 1024", pod.Containers[i].Name, q.String(), r)
			}
			index, name, devices = i, r, int(n)
		}
	}
	if index < 0 {
		return 0, "", 0, errNoDevices
	}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		if u := requestsOf(c.Resources.Limits); u.devices > 0 && c.RestartPolicy != nil && *c.RestartPolicy == core.ContainerRestartPolicyAlways {
			return 0, "", 0, fmt.Errorf("sidecar %q and container %q both request devices, want one", c.Name, pod.Containers[index].Name)
		}
	}
	return index, name, devices, nil
}

// requestOf returns the request of a job: recorded, or that of its pods.
func requestOf(j *batch.Job) (requested, error) {
	if text := j.Annotations[RequestedAnnotation]; text != "" {
		var r requested
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.Devices < 1 || r.Host.MilliCPUs < 0 || r.Host.Bytes < 0 {
			return r, fmt.Errorf("annotation %s: %.80q is not what pacer writes; delete it once the pods request what the job wants", RequestedAnnotation, text)
		}
		return r, nil
	}
	index, _, devices, err := container(&j.Spec.Template.Spec)
	if err != nil {
		return requested{}, err
	}
	pods := 1
	if p := j.Spec.Parallelism; p != nil {
		pods = int(*p)
	}
	if pods < 1 {
		return requested{}, fmt.Errorf("parallelism is %d, want at least 1", pods)
	}
	return requested{pods * devices, hostOf(j.Spec.Template.Spec.Containers[index].Resources.Requests, devices)}, nil
}

// hostOf returns what a container with a number of devices requests for each.
func hostOf(requests core.ResourceList, devices int) spec.Host {
	return spec.Host{MilliCPUs: share(requests.Cpu().MilliValue(), devices), Bytes: share(requests.Memory().Value(), devices)}
}

// share divides n by parts, rounded up.
func share(n int64, parts int) int64 { return (n + int64(parts) - 1) / int64(parts) }

// jobOf reads what a job says of itself, without its state.
func (c *Cluster) jobOf(j *batch.Job) (live.Job, error) {
	out := live.Job{Submitted: j.CreationTimestamp.Time, Done: -1}
	r, err := requestOf(j)
	if err != nil {
		return out, err
	}
	if mode := j.Spec.CompletionMode; mode == nil || *mode != batch.IndexedCompletion {
		return out, errors.New("completionMode is not Indexed, which gives each pod its rank")
	}
	if p, n := j.Spec.Parallelism, j.Spec.Completions; n == nil || p != nil && *p != *n || p == nil && *n != 1 {
		return out, errors.New("completions and parallelism differ, want the number of pods in both")
	}
	err = c.annotated(&out, j, r)
	return out, err
}

// annotated reads the annotations of an object with a request into a job.
func (c *Cluster) annotated(out *live.Job, of meta.Object, r requested) (err error) {
	a := annotations(of.GetAnnotations())
	s := &out.Spec
	s.ID, s.Devices, s.Host = spec.JobID(of.GetNamespace()+"/"+of.GetName()), r.Devices, r.Host
	s.Accelerator, s.Tenant = a[AcceleratorAnnotation], a[TenantAnnotation]
	if s.Tenant == "" {
		s.Tenant = of.GetNamespace()
	}
	if a[ModelAnnotation] == "" {
		return fmt.Errorf("annotation %s is missing, want the name of a model", ModelAnnotation)
	}
	if s.Model, err = c.Model(a[ModelAnnotation]); err != nil {
		return fmt.Errorf("annotation %s: %w", ModelAnnotation, err)
	}
	if text := a[PlanAnnotation]; text != "" {
		if s.Plan, err = spec.ParsePlan(text); err != nil {
			return fmt.Errorf("annotation %s: %w", PlanAnnotation, err)
		}
	}
	if text := a[DurationAnnotation]; text != "" {
		if s.Duration, err = time.ParseDuration(text); err != nil || s.Duration <= 0 {
			return fmt.Errorf("annotation %s: %.80q is no duration above 0, such as 90m", DurationAnnotation, text)
		}
	}
	if text := a[ReleaseAnnotation]; text != "" {
		if out.ReleaseAfter, err = time.ParseDuration(text); err != nil || out.ReleaseAfter <= 0 {
			return fmt.Errorf("annotation %s: %.80q is no duration above 0, such as 30m", ReleaseAnnotation, text)
		}
	}
	err = errors.Join(a.count(BatchAnnotation, &s.GlobalBatch), a.count(SeqLenAnnotation, &s.SeqLen), a.number(StepsAnnotation, &s.Steps),
		a.number(WeightAnnotation, &s.Weight), a.number(DoneAnnotation, &out.Done), a.flag(GuaranteedAnnotation, &s.Guaranteed), a.flag(PausedAnnotation, &out.Paused))
	if err != nil {
		return err
	}
	if s.Steps == 0 && s.Duration == 0 {
		s.Duration = 24 * time.Hour
	}
	return s.Validate()
}

type annotations map[string]string

// number reads a finite number of at least 0 into v, if there is one.
func (a annotations) number(name string, v *float64) error {
	text, ok := a[name]
	if !ok {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		return fmt.Errorf("annotation %s: %.80q is no number of at least 0", name, text)
	}
	*v = f
	return nil
}

// count reads a whole number of at least 1 into v, if there is one.
func (a annotations) count(name string, v *int) error {
	text, ok := a[name]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("annotation %s: %.80q is no whole number of at least 1", name, text)
	}
	*v = n
	return nil
}

// flag reads true or false into v, if there is one.
func (a annotations) flag(name string, v *bool) error {
	text, ok := a[name]
	if !ok {
		return nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("annotation %s: %.80q, want true or false", name, text)
	}
	*v = b
	return nil
}

// times returns a quantity for a number of devices.
func times(perDevice int64, devices int, milli bool) resource.Quantity {
	if milli {
		return *resource.NewMilliQuantity(perDevice*int64(devices), resource.DecimalSI)
	}
	return *resource.NewQuantity(perDevice*int64(devices), resource.BinarySI)
}
