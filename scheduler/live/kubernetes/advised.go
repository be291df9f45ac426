package kubernetes

import (
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// advised are the objects of a kind that is advised and not started.
type advised struct {
	*kind
	lister cache.GenericLister
}

// group returns group, version and plural of the kind.
func (k *kind) group() schema.GroupVersionResource {
	group, version, _ := strings.Cut(k.apiVersion, "/")
	return schema.GroupVersionResource{Group: group, Version: version, Resource: strings.ToLower(k.name) + "s"}
}

// followAdvised adds the kinds of Options.Advised that the server has, except Job.
func (c *Cluster) followAdvised(handler cache.ResourceEventHandler) error {
	served := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.Advised, 0, c.Namespace, func(l *meta.ListOptions) { l.LabelSelector = ManagedLabel + "=true" })
	for i := range kinds {
		k := &kinds[i]
		if k.suspend == nil {
			continue
		}
		_, err := c.client.Discovery().ServerResourcesForGroupVersion(k.apiVersion)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("kubernetes: %s: %w", k.apiVersion, err)
		}
		informer := served.ForResource(k.group())
		if err := informer.Informer().SetTransform(strip); err != nil {
			return fmt.Errorf("kubernetes: %w", err)
		}
		r, err := informer.Informer().AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("kubernetes: %w", err)
		}
		c.synced = append(c.synced, r.HasSynced)
		c.advised = append(c.advised, advised{k, informer.Lister()})
	}
	c.factories = append(c.factories, served)
	return nil
}

// observeAdvised adds the suspended objects of the advised kinds to s and read. Those that run are usage by their pods.
func (c *Cluster) observeAdvised(s *live.State, read map[types.UID]*parsedJob) error {
	for _, a := range c.advised {
		objects, err := a.lister.List(labels.Everything())
		if err != nil {
			return fmt.Errorf("kubernetes: %w", err)
		}
		for _, o := range objects {
			u, ok := o.(*unstructured.Unstructured)
			if !ok || !a.waits(u) {
				continue
			}
			p := c.cached(u)
			if p == nil {
				p = &parsedJob{version: u.GetResourceVersion()}
				p.job, p.err = c.advisedJob(a.kind, u)
			}
			read[u.GetUID()] = p
			if p.err != nil {
				s.Faults = append(s.Faults, live.Fault{Object: "job " + string(advisedID(u)), Err: p.err})
				continue
			}
			job := p.job
			job.Phase, job.Version, job.Ref = live.Held, p.version, u
			s.Jobs = append(s.Jobs, job)
		}
	}
	return nil
}

// waits reports whether an object is suspended and may start.
func (k *kind) waits(u *unstructured.Unstructured) bool {
	suspended, _, err := unstructured.NestedBool(u.Object, k.suspend...)
	if err != nil || !suspended || u.GetDeletionTimestamp() != nil {
		return false
	}
	if owner := meta.GetControllerOf(u); owner != nil {
		for i := range kinds {
			if owner.Kind == kinds[i].name { // the owner is advised
				return false
			}
		}
	}
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(object)
		switch kind, _ := c["type"].(string); kind {
		case "Complete", "Completed", "Succeeded", "Failed":
			if c["status"] == string(core.ConditionTrue) {
				return false
			}
		}
	}
	return err == nil
}

// advisedID is the ID of an object that is no Job, such as "ml/trainjob/llama".
func advisedID(u *unstructured.Unstructured) spec.JobID {
	return spec.JobID(u.GetNamespace() + "/" + strings.ToLower(u.GetKind()) + "/" + u.GetName())
}

// advisedJob reads what an object says of itself.
func (c *Cluster) advisedJob(k *kind, u *unstructured.Unstructured) (live.Job, error) {
	out := live.Job{Submitted: u.GetCreationTimestamp().Time, Done: -1}
	pods, err := k.read(runtime.DeepCopyJSON(at(u.Object, "spec")))
	if err == nil {
		err = pods.check()
	}
	if err == nil {
		err = c.annotated(&out, u, pods.request())
	}
	out.Spec.ID = advisedID(u)
	return out, err
}

// find returns the job, or the object of an advised kind, with an ID; nil if there is none.
func (c *Cluster) find(id spec.JobID) managed {
	namespace, name, ok := strings.Cut(string(id), "/")
	if !ok {
		return nil
	}
	kind, name, ok := strings.Cut(name, "/")
	if !ok {
		if j, err := c.jobs.Jobs(namespace).Get(kind); err == nil {
			return j
		}
		return nil // it was deleted
	}
	for _, a := range c.advised {
		if strings.ToLower(a.name) != kind {
			continue
		}
		o, err := a.lister.ByNamespace(namespace).Get(name)
		if u, ok := o.(*unstructured.Unstructured); ok && err == nil {
			return u
		}
	}
	return nil
}
