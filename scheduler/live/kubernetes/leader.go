package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// Lease is the lease that the one pacer holds which may write.
type Lease struct {
	Namespace, Name string
	Identity        string        // of this process, unique
	Duration        time.Duration // until another may take it from one that died, 0 = 15 s; at least a second
}

// Validate returns an error that names the field.
func (l Lease) Validate() error {
	switch {
	case l.Namespace == "" || l.Name == "" || l.Identity == "":
		return fmt.Errorf("kubernetes: lease %q in namespace %q held by %q, want all three", l.Name, l.Namespace, l.Identity)
	case l.Duration != 0 && l.Duration < time.Second:
		return fmt.Errorf("kubernetes: lease duration is %v, want at least 1s", l.Duration)
	}
	return nil
}

// Lead waits for the lease and calls f. The context of f ends with ctx or with the lease. Once f
// has returned Lead releases the lease and returns. The error says that the lease was lost. waiting, if
// set, gets the holders that it waits for.
func Lead(ctx context.Context, client kubernetes.Interface, l Lease, waiting func(holder string), f func(context.Context)) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if l.Duration == 0 {
		l.Duration = 15 * time.Second
	}
	// The lease outlives ctx until f has returned: no other process writes meanwhile.
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	var mu sync.Mutex
	var over bool          // f is not called any more
	var done chan struct{} // closed once f has returned, nil = f was not called
	lost := false
	finish := func() {
		mu.Lock()
		defer mu.Unlock()
		if over = true; done != nil {
			<-done
		}
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: meta.ObjectMeta{Namespace: l.Namespace, Name: l.Name},
			Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: l.Identity}},
		// The ratios of the controllers of Kubernetes: 15 s, 10 s, 2 s.
		LeaseDuration: l.Duration, RenewDeadline: l.Duration * 2 / 3, RetryPeriod: l.Duration * 2 / 15,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lease context.Context) {
				mu.Lock()
				if over {
					mu.Unlock()
					return
				}
				done = make(chan struct{})
				mu.Unlock()
				defer release()
				defer close(done)
				run, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(lease, cancel)()
				f(run)
				lost = lease.Err() != nil && ctx.Err() == nil
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				if waiting != nil && holder != l.Identity {
					waiting(holder)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		finish()
		release()
	})()
	elector.Run(holding)
	finish()
	l.giveUp(client)
	if lost {
		return errors.New("kubernetes: the lease was lost")
	}
	return nil
}

// giveUp releases the lease if this process still holds it. The elector tries that once, which has no effect if the server
// completes a canceled renewal at the same time: another process would then wait until the lease ends. It also does so if
// the server does not answer here.
func (l Lease) giveUp(client kubernetes.Interface) {
	ctx, cancel := context.WithTimeout(context.Background(), l.Duration*2/3)
	defer cancel()
	leases := client.CoordinationV1().Leases(l.Namespace)
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err := leases.Get(ctx, l.Name, meta.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != l.Identity {
			return err
		}
		none, second, now := "", int32(1), meta.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &none, &second, &now
		_, err = leases.Update(ctx, lease, meta.UpdateOptions{})
		return err
	})
}
