package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Names that Kubernetes knows pacer by.
const (
	ManagedLabel = "pacer.dev/managed"   // "true" on jobs that pacer schedules
	Gate         = "pacer.dev/placement" // scheduling gate of pods without a node
	FieldManager = "pacer"
	hostname     = core.LabelHostname
)

// Options of a Cluster. Model and NodeType are required.
type Options struct {
	// Namespace is that of the jobs, "" = all.
	Namespace string
	// Model returns the model that a job names.
	Model func(name string) (spec.Model, error)
	// NodeType returns a node with a number of devices of an accelerator, as the node's labels name it.
	NodeType func(accelerator string, devices int) (spec.NodeGroup, error)
	// ReadOnly refuses every write.
	ReadOnly bool
	// Advised adds the suspended JobSets, PyTorchJobs and TrainJobs that it finds. They can be advised and not started, so it
	// needs ReadOnly. nil = Jobs alone.
	Advised dynamic.Interface
	// Limit is the longest time of one request that is no watch, 0 = 30 s.
	Limit time.Duration
}

// Validate returns an error that names the field.
func (o Options) Validate() error {
	if o.Model == nil || o.NodeType == nil {
		return errors.New("kubernetes: options without Model or NodeType")
	}
	if o.Advised != nil && !o.ReadOnly {
		return errors.New("kubernetes: options with Advised and without ReadOnly")
	}
	if o.Limit < 0 {
		return fmt.Errorf("kubernetes: limit of requests is %v, want at least 0", o.Limit)
	}
	return nil
}

// Cluster is a live.Cluster. It is safe for concurrent use.
type Cluster struct {
	Options
	client kubernetes.Interface

	factories []interface{ Start(stop <-chan struct{}) }
	advised   []advised
	nodes     corelisters.NodeLister
	jobs      batchlisters.JobLister
	pods      corelisters.PodLister
	synced    []cache.InformerSynced
	changed   chan struct{}
	gated     workqueue.TypedRateLimitingInterface[cache.ObjectName] // pods that wait for their node

	events *eventQueue
	advice map[types.UID]jobAdvice

	mu        sync.Mutex
	parsed    map[types.UID]*parsedJob
	usable    map[string]live.Node // by name and UID, as last seen with devices
	completed map[types.UID]bool   // jobs that were deleted after they had ended, since the last observation
	placing   map[types.UID]int    // pods to be placed of jobs on several nodes
}

var _ live.Notifier = (*Cluster)(nil)

// New returns the engine for the cluster of a client. Run starts it.
func New(client kubernetes.Interface, o Options) (*Cluster, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Limit == 0 {
		o.Limit = 30 * time.Second
	}
	factory := func(tweak func(*meta.ListOptions), more ...informers.SharedInformerOption) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(client, 0, append(more, informers.WithTransform(strip), informers.WithTweakListOptions(tweak))...)
	}
	nodes := factory(func(*meta.ListOptions) {})
	pods := factory(func(l *meta.ListOptions) { l.FieldSelector = "status.phase!=Failed" })
	jobs := factory(func(l *meta.ListOptions) { l.LabelSelector = ManagedLabel + "=true" }, informers.WithNamespace(o.Namespace))
	c := &Cluster{Options: o, client: client, factories: []interface{ Start(stop <-chan struct{}) }{nodes, pods, jobs},
		nodes: nodes.Core().V1().Nodes().Lister(), pods: pods.Core().V1().Pods().Lister(), jobs: jobs.Batch().V1().Jobs().Lister(),
		changed: make(chan struct{}, 1), parsed: map[types.UID]*parsedJob{}, completed: map[types.UID]bool{}, placing: map[types.UID]int{}, events: newEventQueue(client.CoreV1().Events(""), o.Limit),
		gated: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](retryLeast, retryMost)),
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: c.wake, UpdateFunc: func(_, o any) { c.wake(o) }, DeleteFunc: c.deleted}
	for _, i := range []cache.SharedIndexInformer{nodes.Core().V1().Nodes().Informer(), pods.Core().V1().Pods().Informer(), jobs.Batch().V1().Jobs().Informer()} {
		r, err := i.AddEventHandler(handler)
		if err != nil {
			return nil, fmt.Errorf("kubernetes: %w", err)
		}
		c.synced = append(c.synced, r.HasSynced)
	}
	if o.Advised != nil {
		return c, c.followAdvised(handler)
	}
	return c, nil
}

// wake records that an object changed. It does not block.
func (c *Cluster) wake(o any) {
	if p, ok := o.(*core.Pod); ok && gated(p) {
		c.gated.Add(cache.MetaObjectToName(p))
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// deleted records that an object was deleted.
func (c *Cluster) deleted(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if j, ok := o.(*batch.Job); ok && ended(j) {
		c.mu.Lock()
		c.completed[j.UID] = true
		c.mu.Unlock()
	}
	c.wake(o)
}

// Check returns nil once nodes, pods and what trains can be read. An error says what could not be read within a minute.
func (c *Cluster) Check(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := c.access(limited)
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return err
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("kubernetes: nodes, pods and what trains are not read after a minute: %w", err)
		case <-time.After(time.Second):
		}
	}
}

// Run reads the state of the cluster and follows it until ctx is done. It returns once the
// first state is there, which has every write that was made before, or ctx is done. An error says what could not be read within a minute.
func (c *Cluster) Run(ctx context.Context) error {
	for _, f := range c.factories {
		f.Start(ctx.Done())
	}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !cache.WaitForCacheSync(limited.Done(), c.synced...) {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("kubernetes: nodes, pods and what trains are not read after a minute: %w", c.access(ctx))
	}
	if !c.ReadOnly {
		c.events.start(ctx)
		c.place(ctx)
	}
	return nil
}

// access returns the error of reading one object of each kind, which names the missing right.
func (c *Cluster) access(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	one := meta.ListOptions{Limit: 1}
	if _, err := c.client.CoreV1().Nodes().List(ctx, one); err != nil {
		return err
	}
	if _, err := c.client.CoreV1().Pods("").List(ctx, one); err != nil {
		return err
	}
	for _, a := range c.advised {
		if _, err := c.Advised.Resource(a.group()).Namespace(c.Namespace).List(ctx, one); err != nil {
			return err
		}
	}
	_, err := c.client.BatchV1().Jobs(c.Namespace).List(ctx, one)
	return err
}

// Finish waits until the Events of what was done are written, for two seconds at most.
func (c *Cluster) Finish() { c.events.finish() }

// Watch implements live.Cluster.
func (c *Cluster) Watch(ctx context.Context) (<-chan struct{}, error) {
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.changed:
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out, nil
}

// Notify implements live.Notifier: an Event of the job.
func (c *Cluster) Notify(e live.Event) {
	if c.ReadOnly || e.DryRun {
		return
	}
	if j := c.subject(e); j != nil {
		c.events.add(j, e.Warning, string(e.Kind), shortened(e.Message))
	}
}

// managed is a Job, or an object of another kind that trains.
type managed interface {
	meta.Object
	runtime.Object
}

// subject returns the object that e is about, nil without one. A fault has only the ID of its job.
func (c *Cluster) subject(e live.Event) managed {
	if e.Job != nil {
		j, _ := e.Job.Ref.(managed)
		return j
	}
	if id, isJob := strings.CutPrefix(e.Object, "job "); isJob {
		return c.find(spec.JobID(id))
	}
	return nil
}

// strip removes what is never read, which is most of a pod.
func strip(o any) (any, error) {
	switch o := o.(type) {
	case *core.Pod:
		o.ManagedFields = nil
		o.Spec.Volumes, o.Spec.EphemeralContainers, o.Spec.Affinity = nil, nil, nil
		for _, containers := range [][]core.Container{o.Spec.InitContainers, o.Spec.Containers} {
			for i, c := range containers {
				containers[i] = core.Container{Resources: c.Resources, RestartPolicy: c.RestartPolicy}
			}
		}
		o.Status = core.PodStatus{Phase: o.Status.Phase, StartTime: o.Status.StartTime}
	case *core.Node:
		o.ManagedFields = nil
		o.Status.Images, o.Status.Addresses, o.Status.VolumesAttached, o.Status.VolumesInUse = nil, nil, nil, nil
	case meta.Object:
		o.SetManagedFields(nil)
	}
	return o, nil
}
