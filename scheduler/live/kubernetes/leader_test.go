package kubernetes_test

import (
	"context"
	"testing"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
)

// The lease is free after a run that ends during a renewal, which the server completes between the elector's two requests
// to release it, so that the second is a conflict.
func TestLeaseFreeAfterShortRun(t *testing.T) {
	client, conflicts := fake.NewClientset(), 0
	client.PrependReactor("update", "leases", func(a kubetesting.Action) (bool, runtime.Object, error) {
		lease := a.(kubetesting.UpdateAction).GetObject().(*coordination.Lease)
		if *lease.Spec.HolderIdentity != "" || conflicts > 0 {
			return false, nil, nil
		}
		conflicts++
		return true, nil, errors.NewConflict(coordination.Resource("leases"), lease.Name, nil)
	})
	ran := false
	l := kubernetes.Lease{Namespace: "default", Name: "pacer", Identity: "one"}
	if err := kubernetes.Lead(t.Context(), client, l, nil, func(context.Context) { ran = true }); err != nil || !ran {
		t.Fatalf("ran %v, %v", ran, err)
	}
	lease, err := client.CoordinationV1().Leases("default").Get(t.Context(), "pacer", meta.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "" || conflicts != 1 {
		t.Errorf("after %d conflicts the lease is %+v, %v", conflicts, lease.Spec, err)
	}
}
