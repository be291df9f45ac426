package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/pacer-ml/pacer/scheduler/live"
)

const (
	placers    = 16 // pods that are placed at a time
	retryLeast = 50 * time.Millisecond
	retryMost  = 30 * time.Second
)

// place lifts the gates of pods until ctx is done.
func (c *Cluster) place(ctx context.Context) {
	context.AfterFunc(ctx, c.gated.ShutDown)
	for range placers {
		go func() {
			for {
				name, quit := c.gated.Get()
				if quit {
					return
				}
				if err := c.placePod(ctx, name); err != nil && ctx.Err() == nil {
					c.gated.AddRateLimited(name)
				} else {
					c.gated.Forget(name)
				}
				c.gated.Done(name)
			}
		}()
	}
}

// gated reports whether a pod waits for its node.
func gated(p *core.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Spec.SchedulingGates, func(g core.PodSchedulingGate) bool { return g.Name == Gate })
}

// placePod lifts the gate of a pod, with a selector of the node that its index has among those of
// its job.
func (c *Cluster) placePod(ctx context.Context, name cache.ObjectName) error {
	p, err := c.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) || err == nil && !gated(p) {
		return nil
	}
	if err != nil {
		return err
	}
	node, err := nodeFor(p)
	if err != nil {
		c.recorder.Event(p, core.EventTypeWarning, string(live.Faulty), err.Error())
		return nil // until the pod changes
	}
	host, err := c.hostnameOf(node)
	if err != nil {
		return err
	}
	body, err := json.Marshal(object{
		"metadata": object{"uid": p.UID},
		"spec":     object{"nodeSelector": object{hostname: host}, "schedulingGates": []object{{"$patch": "delete", "name": Gate}}},
	})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, body, meta.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another pod has its name
	}
	return err
}

// nodeFor returns the node of a gated pod.
func nodeFor(p *core.Pod) (string, error) {
	slots, err := live.ParseSlots(p.Annotations[SlotsAnnotation])
	if err != nil {
		return "", fmt.Errorf("annotation %s: %w", SlotsAnnotation, err)
	}
	index, err := strconv.Atoi(p.Annotations[batch.JobCompletionIndexAnnotation])
	if nodes := slices.Sorted(maps.Keys(slots)); err == nil && index >= 0 && index < len(nodes) {
		return nodes[index], nil
	}
	return "", fmt.Errorf("annotation %s: %q is no index of the nodes %s", batch.JobCompletionIndexAnnotation, p.Annotations[batch.JobCompletionIndexAnnotation], slots)
}

// Settled returns an error if a pod waits for its node.
func (c *Cluster) Settled() error {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(pods, gated) {
		return errors.New("kubernetes: pods wait for their nodes")
	}
	return nil
}
