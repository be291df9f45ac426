package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// AdmissionController is the controllerName of the AdmissionChecks of Kueue that pacer answers.
const AdmissionController = "pacer.dev/plan"

// Kinds of Kueue, as unstructured objects.
var (
	kueue           = schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
	workloads       = kueue.WithResource("workloads")
	admissionChecks = kueue.WithResource("admissionchecks")
	resourceFlavors = kueue.WithResource("resourceflavors")
)

// States of an AdmissionCheck.
const (
	checkPending  = "Pending"
	checkReady    = "Ready"
	checkRetry    = "Retry"    // Kueue queues the workload again
	checkRejected = "Rejected" // Kueue deactivates the workload
)

// retryAdmission is how long Kueue waits before it admits a part of a workload again that no plan fits on.
const retryAdmission = time.Minute

// AdmissionOptions are those of an Admission. Model and Plan are required.
type AdmissionOptions struct {
	// Namespace is that of the workloads, "" = all.
	Namespace string
	// Model returns the model that a job names.
	Model func(name string) (spec.Model, error)
	// Plan returns the best plan of a job on its accelerator and a shape, and the throughput in samples/s. With a plan of its
	// own the job keeps that. The error wraps planner.ErrInfeasible if none fits.
	Plan func(ctx context.Context, j spec.Job, shape spec.Shape) (planner.Choice, error)
	// ReadOnly refuses every write.
	ReadOnly bool
	// OnAnswer, if set, receives every answer, one at a time.
	OnAnswer func(Answer)
	// Limit is the longest time of one request that is no watch, 0 = 30 s.
	Limit time.Duration
}

// Answer is what pacer says of a workload.
type Answer struct {
	Workload string // namespace/name
	State    string // of the check: Ready, Retry, Rejected; Pending = it is tried again
	Message  string
}

// Admission answers AdmissionChecks of Kueue. Kueue decides which workloads run, on which flavor and with how many pods; pacer
// gives each its plan before it starts. A flavor is an accelerator type.
type Admission struct {
	AdmissionOptions
	client    dynamic.Interface
	factories []dynamicinformer.DynamicSharedInformerFactory
	workloads cache.GenericLister
	checks    cache.GenericLister
	synced    []cache.InformerSynced
	queue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
	answers   sync.Mutex
}

// NewAdmission returns what answers the checks of the cluster of a client. Run starts it.
func NewAdmission(client dynamic.Interface, o AdmissionOptions) (*Admission, error) {
	if o.Model == nil || o.Plan == nil {
		return nil, errors.New("kubernetes: admission options without Model or Plan")
	}
	if o.Limit < 0 {
		return nil, fmt.Errorf("kubernetes: limit of requests is %v, want at least 0", o.Limit)
	}
	if o.Limit == 0 {
		o.Limit = 30 * time.Second
	}
	if o.OnAnswer == nil {
		o.OnAnswer = func(Answer) {}
	}
	a := &Admission{AdmissionOptions: o, client: client,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](retryLeast, retryMost))}
	var err error
	a.workloads, err = a.follow(workloads, o.Namespace, func(o any) {
		if w, ok := o.(*unstructured.Unstructured); ok {
			a.queue.Add(cache.MetaObjectToName(w))
		}
	})
	if err != nil {
		return nil, err
	}
	a.checks, err = a.follow(admissionChecks, meta.NamespaceAll, func(o any) {
		c, ok := o.(*unstructured.Unstructured)
		if !ok || !asks(c) {
			return
		}
		a.queue.Add(cache.ObjectName{Name: c.GetName()}) // no namespace: a check
		all, err := a.workloads.List(labels.Everything())
		for i := range all { // they may have been seen before the check
			if w, ok := all[i].(*unstructured.Unstructured); ok && err == nil {
				a.queue.Add(cache.MetaObjectToName(w))
			}
		}
	})
	return a, err
}

// follow keeps a copy of the objects of a kind, and calls changed for those that changed.
func (a *Admission) follow(kind schema.GroupVersionResource, namespace string, changed func(any)) (cache.GenericLister, error) {
	f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(a.client, 0, namespace, nil)
	informer := f.ForResource(kind)
	if err := informer.Informer().SetTransform(strip); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	r, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }})
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	a.factories, a.synced = append(a.factories, f), append(a.synced, r.HasSynced)
	return informer.Lister(), nil
}

// Run answers until ctx is done. An error says what could not be read within a minute.
func (a *Admission) Run(ctx context.Context) error {
	for _, f := range a.factories {
		f.Start(ctx.Done())
	}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !cache.WaitForCacheSync(limited.Done(), a.synced...) && ctx.Err() == nil {
		_, err := a.client.Resource(workloads).Namespace(a.Namespace).List(ctx, meta.ListOptions{Limit: 1})
		return fmt.Errorf("kubernetes: workloads and admission checks of Kueue (%s) are not read after a minute: %w", kueue, err)
	}
	context.AfterFunc(ctx, a.queue.ShutDown)
	var all sync.WaitGroup
	for range placers {
		all.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	all.Wait()
	return nil
}

// next takes one object up. It returns false at the end.
func (a *Admission) next(ctx context.Context) bool {
	name, quit := a.queue.Get()
	if quit {
		return false
	}
	defer a.queue.Done(name)
	take := a.answer
	if name.Namespace == "" {
		take = a.activate
	}
	err := take(ctx, name)
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // it changed, and is taken up again
		a.queue.Forget(name)
	case ctx.Err() == nil:
		a.report(Answer{name.String(), checkPending, err.Error()})
		a.queue.AddRateLimited(name)
	}
	return true
}

func (a *Admission) report(r Answer) {
	a.answers.Lock()
	defer a.answers.Unlock()
	a.OnAnswer(r)
}

// asks reports whether an AdmissionCheck asks pacer.
func asks(check *unstructured.Unstructured) bool {
	return at(check.Object, "spec")["controllerName"] == AdmissionController
}

// activate says that a check is answered: until then Kueue admits nothing that needs it.
func (a *Admission) activate(ctx context.Context, name cache.ObjectName) error {
	o, err := a.checks.Get(name.Name)
	if err != nil {
		return err
	}
	check, ok := o.(*unstructured.Unstructured)
	if !ok || !asks(check) || isTrue(check, "Active") {
		return nil
	}
	return a.patch(ctx, admissionChecks, check, object{"conditions": []any{object{
		"type": "Active", "status": "True", "reason": "Active", "message": "pacer answers this check", "observedGeneration": check.GetGeneration(),
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}})
}

// answer answers the pending checks of a workload that Kueue has reserved quota for.
func (a *Admission) answer(ctx context.Context, name cache.ObjectName) error {
	o, err := a.workloads.ByNamespace(name.Namespace).Get(name.Name)
	if err != nil {
		return err
	}
	w, ok := o.(*unstructured.Unstructured)
	if !ok || w.GetDeletionTimestamp() != nil || isTrue(w, "Finished") || isTrue(w, "Evicted") || !isTrue(w, "QuotaReserved") {
		return nil
	}
	pending := -1
	states, _, err := unstructured.NestedSlice(w.Object, "status", "admissionChecks") // a copy
	if err != nil {
		return err
	}
	for i := range states {
		if s, ok := states[i].(object); ok && s["state"] == checkPending && a.ours(s["name"]) {
			pending = i
		}
	}
	if pending < 0 {
		return nil
	}
	was := states[pending].(object)
	v, failed := a.judge(ctx, w)
	if failed != nil { // its owner sees why it waits
		v = verdictOf(checkPending, "%v", failed)
		if v.state["message"] == was["message"] {
			return failed
		}
	}
	v.state["name"], v.state["lastTransitionTime"] = was["name"], time.Now().UTC().Format(time.RFC3339)
	states[pending] = v.state
	if err := a.patch(ctx, workloads, w, object{"admissionChecks": states}); err != nil || failed != nil {
		return cmp.Or(failed, err)
	}
	a.report(Answer{name.String(), v.state["state"].(string), v.state["message"].(string)})
	return nil
}

// ours reports whether a check of some name asks pacer.
func (a *Admission) ours(name any) bool {
	text, _ := name.(string)
	o, err := a.checks.Get(text)
	check, ok := o.(*unstructured.Unstructured)
	return err == nil && ok && asks(check)
}

// verdict is the state of a check, without its name and time.
type verdict struct{ state object }

func verdictOf(state, message string, args ...any) verdict {
	return verdict{object{"state": state, "message": fmt.Sprintf(message, args...)}}
}

// judge returns what to say of a workload with quota. An error is tried again.
func (a *Admission) judge(ctx context.Context, w *unstructured.Unstructured) (verdict, error) {
	sets, err := admittedSets(w)
	if errors.Is(err, errNoDevices) {
		return verdictOf(checkReady, "no pod has a device: admitted without a plan"), nil
	}
	if err != nil {
		return verdictOf(checkRejected, "%v", err), nil
	}
	job, err := a.jobOf(ctx, w, sets)
	if err != nil {
		return verdict{}, err
	}
	if job.GetAnnotations()[ModelAnnotation] == "" {
		return verdictOf(checkReady, "no annotation %s: admitted without a plan", ModelAnnotation), nil
	}
	var c Cluster
	c.Model = a.Model
	request, err := c.admitted(job, sets)
	if err != nil {
		return verdictOf(checkRejected, "%v", err), nil
	}
	nodes, err := a.flavorOf(ctx, sets[0].flavor)
	if err != nil {
		return verdict{}, err
	}
	request.Accelerator = acceleratorOf(sets[0].flavor, nodes)
	var counts []int
	for _, s := range sets {
		counts = append(counts, slices.Repeat([]int{s.devices}, s.count)...)
	}
	best, err := a.Plan(ctx, request, spec.NewShape(counts...))
	switch {
	case errors.Is(err, planner.ErrInfeasible) && sets.reduced():
		v := verdictOf(checkRetry, "no plan fits on %d pods, to which the job was reduced: %v", len(counts), err)
		v.state["requeueAfterSeconds"] = int64(retryAdmission.Seconds())
		return v, nil
	case errors.Is(err, planner.ErrInfeasible):
		return verdictOf(checkRejected, "no plan fits: %v", err), nil
	case err != nil:
		return verdict{}, err
	}
	v := verdictOf(checkReady, "%s on %d x %s, %.4g samples/s predicted", best.Config.Plan, request.Devices, request.Accelerator, best.Prediction.Throughput)
	if sets.planned() {
		return v, nil // Kueue refuses to change what the pods have
	}
	var updates []any
	for _, s := range sets {
		updates = append(updates, object{"name": s.name, "annotations": object{PlanAnnotation: best.Config.Plan.String()}})
	}
	v.state["podSetUpdates"] = updates
	return v, nil
}

// acceleratorOf returns the accelerator of a flavor: what its nodes are labelled with, else its name.
func acceleratorOf(flavor string, labels map[string]string) string {
	for _, l := range AcceleratorLabels {
		if labels[l] != "" {
			return labels[l]
		}
	}
	return flavor
}

// flavorOf returns the labels of the nodes of a flavor.
func (a *Admission) flavorOf(ctx context.Context, name string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Limit)
	defer cancel()
	f, err := a.client.Resource(resourceFlavors).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("kubernetes: flavor %q: %s", name, err.Error()) // not wrapped: one that is not found is waited for
	}
	labels, _, err := unstructured.NestedStringMap(f.Object, "spec", "nodeLabels")
	return labels, err
}

// isTrue reports whether an object has a condition.
func isTrue(o *unstructured.Unstructured, kind string) bool {
	all, _ := at(o.Object, "status")["conditions"].([]any)
	return slices.ContainsFunc(all, func(c any) bool {
		condition, _ := c.(object)
		return condition["type"] == kind && condition["status"] == string(core.ConditionTrue)
	})
}

// patch changes the status of an object if it is still as observed.
func (a *Admission) patch(ctx context.Context, kind schema.GroupVersionResource, o *unstructured.Unstructured, status object) error {
	if a.ReadOnly {
		return nil
	}
	body, err := json.Marshal(object{"metadata": object{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}, "status": status})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.Limit)
	defer cancel()
	_, err = a.client.Resource(kind).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, body, meta.PatchOptions{FieldManager: FieldManager}, "status")
	return err
}

// jobOf returns the annotations of the job of a workload, with those of its pods on top.
func (a *Admission) jobOf(ctx context.Context, w *unstructured.Unstructured, sets admittedPods) (*unstructured.Unstructured, error) {
	job := &unstructured.Unstructured{Object: object{}}
	job.SetNamespace(w.GetNamespace())
	job.SetName(w.GetName())
	all := map[string]string{}
	if owner := meta.GetControllerOf(w); owner != nil {
		job.SetName(owner.Name)
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == owner.Kind && k.apiVersion == owner.APIVersion })
		if i >= 0 {
			ctx, cancel := context.WithTimeout(ctx, a.Limit)
			defer cancel()
			o, err := a.client.Resource(kinds[i].group()).Namespace(w.GetNamespace()).Get(ctx, owner.Name, meta.GetOptions{})
			if err != nil {
				return nil, err
			}
			maps.Copy(all, o.GetAnnotations())
		}
	}
	maps.Copy(all, sets[0].annotations)
	job.SetAnnotations(all)
	return job, nil
}
