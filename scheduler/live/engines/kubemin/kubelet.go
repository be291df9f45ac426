package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// runAnnotation is the annotation of pods with a command to be run.
const runAnnotation = "kubemin/run"

// kubelet is the kubelet of all nodes.
type kubelet struct {
	client kubernetes.Interface
	pods   listers.PodLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	dir    string

	mu      sync.Mutex
	running map[string]*process // by UID of the pod
}

// kubelets runs the pods that are bound to any node until ctx ends.
func kubelets(ctx context.Context, kubeconfig, dir string) error {
	config, err := clientConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	k := &kubelet{client: client, pods: shared.Core().V1().Pods().Lister(), dir: dir, running: map[string]*process{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, time.Second))}
	add := func(o any) {
		if p, ok := o.(*core.Pod); ok && p.Spec.NodeName != "" {
			k.queue.Add(cache.MetaObjectToName(p))
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: k.deleted}
	if _, err := shared.Core().V1().Pods().Informer().AddEventHandler(handler); err != nil {
		return err
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	context.AfterFunc(ctx, k.queue.ShutDown)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for k.next(ctx) {
			}
		})
	}
	all.Wait()
	for _, p := range k.running {
		p.stop(0)
	}
	return nil
}

// deleted ends the process of a pod that was removed without notice.
func (k *kubelet) deleted(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if p, ok := o.(*core.Pod); ok {
		k.end(p, 0)
	}
}

// end ends the process of a pod, if it has one.
func (k *kubelet) end(p *core.Pod, grace time.Duration) {
	k.mu.Lock()
	run := k.running[string(p.UID)]
	delete(k.running, string(p.UID))
	k.mu.Unlock()
	if run != nil {
		run.stop(grace)
	}
}

func (k *kubelet) next(ctx context.Context) bool {
	name, quit := k.queue.Get()
	if quit {
		return false
	}
	defer k.queue.Done(name)
	p, err := k.pods.Pods(name.Namespace).Get(name.Name)
	if errors.IsNotFound(err) {
		return true
	}
	if err == nil {
		err = k.sync(ctx, p)
	}
	if err != nil && !errors.IsNotFound(err) && ctx.Err() == nil {
		if !errors.IsConflict(err) {
			fmt.Fprintf(os.Stderr, "kubelet: pod %s: %v\n", name, err)
		}
		k.queue.AddRateLimited(name)
		return true
	}
	k.queue.Forget(name)
	return true
}

// sync moves a pod one phase on: pending, running, gone.
func (k *kubelet) sync(ctx context.Context, p *core.Pod) error {
	switch {
	case p.DeletionTimestamp != nil:
		grace := time.Duration(0)
		if s := p.DeletionGracePeriodSeconds; s != nil {
			grace = time.Duration(*s) * time.Second
		}
		k.end(p, grace)
		zero := int64(0)
		return k.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, meta.DeleteOptions{
			GracePeriodSeconds: &zero, Preconditions: &meta.Preconditions{UID: &p.UID}})
	case p.Status.Phase != core.PodPending:
		return nil
	}
	p = p.DeepCopy()
	if p.Annotations[runAnnotation] == "true" {
		if err := k.run(ctx, p); err != nil {
			return k.finish(ctx, p, 127, err.Error())
		}
	}
	now := meta.Now()
	p.Status.Phase, p.Status.StartTime, p.Status.PodIP = core.PodRunning, &now, "127.0.0.1"
	for _, t := range []core.PodConditionType{core.PodInitialized, core.ContainersReady, core.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, core.PodCondition{Type: t, Status: core.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, core.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true,
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}}})
	}
	_, err := k.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, meta.UpdateOptions{})
	return err
}

// run starts the command of a pod unless it runs already.
func (k *kubelet) run(ctx context.Context, p *core.Pod) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running[string(p.UID)] != nil {
		return nil
	}
	run, err := startProcess(p, k.dir)
	if err != nil {
		return err
	}
	k.running[string(p.UID)] = run
	go func() {
		code := run.wait()
		for ctx.Err() == nil {
			now, err := k.pods.Pods(p.Namespace).Get(p.Name)
			if err != nil || now.UID != p.UID || now.DeletionTimestamp != nil {
				return // being deleted: end reports nothing
			}
			if now.Status.Phase == core.PodRunning && k.finish(ctx, now.DeepCopy(), code, "") == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return nil
}

// finish records the exit code of the command of a pod.
func (k *kubelet) finish(ctx context.Context, p *core.Pod, code int, message string) error {
	now := meta.Now()
	p.Status.Phase, p.Status.Message = core.PodSucceeded, message
	if code != 0 {
		p.Status.Phase = core.PodFailed
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == core.PodReady || c.Type == core.ContainersReady {
			c.Status, c.LastTransitionTime = core.ConditionFalse, now
		}
	}
	for i := range p.Status.ContainerStatuses {
		p.Status.ContainerStatuses[i].Ready = false
		p.Status.ContainerStatuses[i].State = core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: int32(code), FinishedAt: now}}
	}
	_, err := k.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, meta.UpdateOptions{})
	return err
}
