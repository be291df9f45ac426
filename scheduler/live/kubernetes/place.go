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
		c.events.add(p, true, string(live.Faulty), err.Error())
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
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	c.events.begin()
	defer c.events.end()
	_, err = c.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, body, meta.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		c.placed(p)
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

// Settle waits until the pods of the jobs that were started have their nodes and all Events are written, a minute at most.
// The error says that some pods have no node then.
func (c *Cluster) Settle(ctx context.Context) error {
	for until := time.Now().Add(time.Minute); ctx.Err() == nil && time.Now().Before(until); time.Sleep(retryLeast) {
		if c.events.idle() && c.Settled() {
			return nil
		}
	}
	if c.Settled() {
		return nil
	}
	return errors.New("kubernetes: some pods have no node yet")
}

// Settled reports whether no pod waits for its node, and none will of the jobs that were started.
func (c *Cluster) Settled() bool {
	c.mu.Lock()
	waits := len(c.placing) > 0
	c.mu.Unlock()
	pods, err := c.pods.List(labels.Everything())
	return err == nil && !waits && !slices.ContainsFunc(pods, gated)
}

// await expects n pods of a job to be placed, in place of those of its last run.
func (c *Cluster) await(job types.UID, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.placing[job] = n
	c.trim(job)
}

// placed counts a pod that was placed.
func (c *Cluster) placed(p *core.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := meta.GetControllerOf(p); o != nil {
		c.placing[o.UID]--
		c.trim(o.UID)
	}
}

// trim forgets a job without pods to be placed.
func (c *Cluster) trim(job types.UID) {
	if c.placing[job] <= 0 {
		delete(c.placing, job)
	}
}
