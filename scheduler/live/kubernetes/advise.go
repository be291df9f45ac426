package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// AdviceAnnotation of a job is what the policy would give it: "PLAN on SLOTS", or "nothing".
const AdviceAnnotation = "pacer.dev/advice"

// Advise keeps what an event of a dry run says of a job, for WriteAdvice. It is called by one goroutine at a time.
func (c *Cluster) Advise(e live.Event) {
	j := c.subject(e)
	if j == nil || !e.DryRun || e.Kind != live.Decided && e.Kind != live.Waiting {
		return
	}
	if e.Kind == live.Waiting {
		e.Message = "nothing: " + e.Message
	}
	if c.advice == nil {
		c.advice = map[types.UID]jobAdvice{}
	}
	c.advice[j.GetUID()] = jobAdvice{j, e.Message}
}

// jobAdvice is a message about a job.
type jobAdvice struct {
	job     managed
	message string
}

// WriteAdvice writes what Advise kept into the annotation of each job with another advice, with an Event that has
// the reason. It writes nothing else, also where the engine is ReadOnly. What fails is tried again at the next call.
func (c *Cluster) WriteAdvice(ctx context.Context) error {
	var failed []error
	for uid, a := range c.advice {
		err := c.writeAdvice(ctx, a)
		if err == nil || apierrors.IsNotFound(err) {
			delete(c.advice, uid)
			continue
		}
		failed = append(failed, fmt.Errorf("kubernetes: advice on job %s/%s: %w", a.job.GetNamespace(), a.job.GetName(), err))
		if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			break // the server does not answer
		}
	}
	return errors.Join(failed...)
}

func (c *Cluster) writeAdvice(ctx context.Context, a jobAdvice) error {
	target, _, _ := strings.Cut(a.message, ": ")
	namespace, name := a.job.GetNamespace(), a.job.GetName()
	other, isOther := a.job.(*unstructured.Unstructured)
	id := spec.JobID(namespace + "/" + name)
	if isOther {
		id = advisedID(other)
	}
	if now := c.find(id); now == nil || now.GetUID() != a.job.GetUID() || now.GetAnnotations()[AdviceAnnotation] == target {
		return nil
	}
	body, err := json.Marshal(object{"metadata": object{"uid": a.job.GetUID(), "annotations": object{AdviceAnnotation: target}}})
	if err != nil {
		return err
	}
	about, err := reference.GetReference(scheme.Scheme, a.job)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	by := meta.PatchOptions{FieldManager: FieldManager}
	if isOther {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == other.GetKind() })
		_, err = c.Advised.Resource(kinds[i].group()).Namespace(namespace).Patch(ctx, name, types.MergePatchType, body, by)
	} else {
		_, err = c.client.BatchV1().Jobs(namespace).Patch(ctx, name, types.MergePatchType, body, by)
	}
	if err != nil {
		return err
	}
	at := meta.Now()
	_, err = c.client.CoreV1().Events(namespace).Create(ctx, &core.Event{
		ObjectMeta: meta.ObjectMeta{GenerateName: "pacer-advice-", Namespace: namespace}, InvolvedObject: *about,
		Type: core.EventTypeNormal, Reason: "Advice", Message: shortened(a.message), Source: core.EventSource{Component: FieldManager}, FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}, meta.CreateOptions{})
	return err
}

// shortened cuts the message of an Event: longer ones are refused.
func shortened(message string) string { return message[:min(len(message), 1000)] }
