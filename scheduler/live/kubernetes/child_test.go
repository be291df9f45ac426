package kubernetes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	kube "k8s.io/client-go/kubernetes"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// writes counts the changes of jobs and pods that the API server made, and ends this process after
// some of them.
type writes struct {
	http.RoundTripper
	after int64 // 0 = never
	n     atomic.Int64
}

func (w *writes) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPatch && !strings.Contains(r.URL.Path, "/events") && resp.StatusCode == http.StatusOK {
		if n := w.n.Add(1); n == w.after {
			fmt.Println(n)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal arrives
		}
	}
	return resp, err
}

// killChild is the process that is killed: a controller that ends after PACER_TEST_KILL writes, or with PACER_TEST_ONCE once
// all jobs are as decided. It prints its number of writes. With PACER_TEST_LEASE it waits for the lease.
func killChild() {
	after, err := strconv.ParseInt(os.Getenv("PACER_TEST_KILL"), 10, 64)
	if err == nil {
		err = runChild(after)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runChild(after int64) error {
	config, err := kubetest.Config(os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	w := &writes{after: after}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		w.RoundTripper = rt
		return w
	})
	client, err := kube.NewForConfig(config)
	if err != nil {
		return err
	}
	if os.Getenv("PACER_TEST_LEASE") == "" {
		err = controlUntilSettled(context.Background(), client, w)
	} else {
		lease := kubernetes.Lease{Namespace: "default", Name: "pacer", Identity: strconv.Itoa(os.Getpid()), Duration: 3 * time.Second}
		lost := kubernetes.Lead(context.Background(), client, lease, nil, func(ctx context.Context) { err = controlUntilSettled(ctx, client, w) })
		err = errors.Join(err, lost)
	}
	fmt.Println(w.n.Load())
	return err
}

// controlUntilSettled runs a controller: until it is killed, or until all jobs are seen to be as decided and their pods have
// their nodes.
func controlUntilSettled(ctx context.Context, client kube.Interface, w *writes) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, controller, err := newPacer(ctx, client, os.Getenv("PACER_TEST_POLICY"), 1) // one writer: every write is counted before the next
	if err != nil {
		return err
	}
	if os.Getenv("PACER_TEST_ONCE") != "" {
		controller.OnTick = func(r live.Report) {
			if r.Observed && r.Made > 0 && r.OffTarget == 0 && p.engine.Settled() {
				cancel()
			}
		}
	}
	return controller.Run(ctx)
}

// child runs a controller in a process of its own and returns its number of writes, and whether
// it was killed.
func child(t *testing.T, c *kubetest.Cluster, policy string, after int) (n int, killed bool) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "PACER_TEST_ONCE=true", "PACER_TEST_KILL="+strconv.Itoa(after), "PACER_TEST_POLICY="+policy, "KUBECONFIG="+c.Kubeconfig)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	killed = cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !killed {
		t.Fatalf("%v: %s", err, errs.String())
	}
	lines := strings.Fields(out.String())
	if len(lines) == 0 {
		t.Fatalf("no number of writes: %s", errs.String())
	}
	if n, err = strconv.Atoi(lines[len(lines)-1]); err != nil {
		t.Fatalf("output %q: %v", out.String(), err)
	}
	return n, killed
}
