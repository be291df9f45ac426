package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// scaleRun is a real Kubernetes with many nodes. Each has room for one job.
type scaleRun struct {
	t     *testing.T
	c     *kubetest.Cluster
	pacer string
	nodes int
}

// each calls f with 0 to n-1, 16 at a time.
func (r *scaleRun) each(n int, f func(i int) error) {
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := w; i < n; i += 16 {
				if err := f(i); err != nil {
					r.t.Errorf("%d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// submit submits suspended jobs with pods that run until they are deleted.
func (r *scaleRun) submit(prefix string, n int) {
	r.each(n, func(i int) error { return r.create(fmt.Sprintf("%s%d", prefix, i), prefix != "bare") })
}

func (r *scaleRun) create(name string, managed bool) error {
	j := kubetest.Job(name, 1, 4, map[string]string{"model": "GPT2-small", "batch": "8", "steps": "1000000"})
	if !managed {
		delete(j.Labels, kubernetes.ManagedLabel)
	}
	_, err := r.c.Client.BatchV1().Jobs("default").Create(r.t.Context(), j, meta.CreateOptions{})
	return err
}

// progress is when jobs were written and ran, as a watch of them tells.
type progress struct {
	recorded, started, full time.Time // the first record, the last start, and the last of as many jobs as there are nodes that runs
	done                    chan struct{}
}

// watch watches jobs until one runs on every node.
func (r *scaleRun) watch() *progress {
	p := &progress{done: make(chan struct{})}
	ctx, stop := context.WithCancel(r.t.Context())
	started, running := map[string]bool{}, map[string]bool{}
	saw := func(o any) {
		j, ok := o.(*batch.Job)
		if !ok || !p.full.IsZero() {
			return
		}
		now := time.Now()
		if p.recorded.IsZero() && j.Annotations[kubernetes.RecordAnnotation] != "" {
			p.recorded = now
		}
		if !*j.Spec.Suspend && !started[j.Name] {
			started[j.Name], p.started = true, now
		}
		if s := j.Status; s.Ready != nil && *s.Ready == 1 {
			running[j.Name] = true
		}
		if len(running) == r.nodes {
			p.full = now
			close(p.done)
			stop()
		}
	}
	all := informers.NewSharedInformerFactory(r.c.Client, 0)
	jobs := all.Batch().V1().Jobs().Informer()
	if _, err := jobs.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: saw, UpdateFunc: func(_, o any) { saw(o) }}); err != nil {
		r.t.Fatal(err)
	}
	all.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), jobs.HasSynced)
	return p
}

// wait waits until a job runs on every node. It returns the time since began, and writes per second.
func (p *progress) wait(r *scaleRun, began time.Time) (full time.Duration, rate float64) {
	select {
	case <-p.done:
	case <-time.After(10 * time.Minute):
		r.t.Fatal("no job on every node in 10 minutes")
	}
	return p.full.Sub(began), 2 * float64(r.nodes) / p.started.Sub(p.recorded).Seconds()
}

// reset deletes all jobs and pods, and gives new nodes.
func (r *scaleRun) reset() {
	r.c.Reset(r.t)
	r.c.AddNodes(r.t, r.nodes, 4)
}

// bare starts as many jobs as fit, by 16 connections that make the two patches with which pacer records and starts a job,
// and nothing else.
func (r *scaleRun) bare(jobs int) (full time.Duration, rate float64) {
	r.submit("bare", jobs)
	p, began := r.watch(), time.Now()
	r.each(r.nodes, func(i int) error {
		node := fmt.Sprintf("n%d", i)
		record := map[string]any{"annotations": map[string]string{
			kubernetes.RecordAnnotation:    `{"generation":1,"plan":"dp=4,tp=1,pp=1,mb=2,ga=1","slots":"` + node + `=4","first-run":null,"waited":"3s"}`,
			kubernetes.RequestedAnnotation: `{"Devices":4,"Host":{}}`,
		}}
		if err := r.patch(i, map[string]any{"metadata": record}); err != nil {
			return err
		}
		devices := map[string]any{"nvidia.com/gpu": 4}
		return r.patch(i, map[string]any{"metadata": record, "spec": map[string]any{"suspend": false, "parallelism": 1, "completions": 1, "template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]string{kubernetes.PlanAnnotation: "dp=4,tp=1,pp=1,mb=2,ga=1", kubernetes.SlotsAnnotation: node + "=4"}},
			"spec": map[string]any{
				"nodeSelector": map[string]string{"kubernetes.io/hostname": node},
				"containers":   []map[string]any{{"name": "train", "resources": map[string]any{"limits": devices, "requests": devices}}},
			}}}})
	})
	return p.wait(r, began)
}

func (r *scaleRun) patch(i int, p map[string]any) error {
	body, err := json.Marshal(p)
	if err == nil {
		_, err = r.c.Client.BatchV1().Jobs("default").Patch(r.t.Context(), fmt.Sprintf("bare%d", i), types.StrategicMergePatchType, body, meta.PatchOptions{})
	}
	return err
}

// start starts pacer schedule.
func (r *scaleRun) start(args ...string) (cmd *exec.Cmd, log *syncBuffer) {
	log = &syncBuffer{}
	cmd = exec.Command(r.pacer, append([]string{"--data", r.t.TempDir(), "schedule", "--on", "kubernetes", "--policy", "fifo", "--kubeconfig", r.c.Kubeconfig, "--lease-duration", "2s"}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, log
}

// end ends a pacer, and returns its processor time and peak memory.
func (r *scaleRun) end(cmd *exec.Cmd, log *syncBuffer) (cpu time.Duration, bytes int64) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		r.t.Errorf("%v: %.2000s", err, log)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		r.t.Fatal("no resource usage of the process")
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss << 10
}

// arrivals submits jobs at a rate, and returns the times from their submission until pacer has started them.
func (r *scaleRun) arrivals(n int, every time.Duration) []time.Duration {
	w, err := r.c.Client.BatchV1().Jobs("default").Watch(r.t.Context(), meta.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Stop()
	submitted, started := make([]time.Time, n), map[string]time.Time{}
	go func() {
		for i := range n {
			submitted[i] = time.Now()
			if err := r.create(fmt.Sprintf("event%d", i), true); err != nil {
				r.t.Error(err)
			}
			time.Sleep(time.Until(submitted[i].Add(every)))
		}
	}()
	for end := time.After(5 * time.Minute); len(started) < n; {
		select {
		case e, ok := <-w.ResultChan():
			j, is := e.Object.(*batch.Job)
			if !ok || !is {
				r.t.Fatal("the watch ended")
			}
			if !*j.Spec.Suspend && started[j.Name].IsZero() {
				started[j.Name] = time.Now()
			}
		case <-end:
			r.t.Fatalf("%d of %d jobs were started", len(started), n)
		}
	}
	var out []time.Duration
	for i := range n {
		out = append(out, started[fmt.Sprintf("event%d", i)].Sub(submitted[i]))
	}
	return out
}

// TestE2EKubernetesScale measures pacer schedule on a real API server with 1000 nodes and 5000 jobs, beside a client that only
// makes the writes: with PACER_SOAK, for a quiet machine. In make test the numbers are small, and nothing is measured.
func TestE2EKubernetesScale(t *testing.T) {
	r := &scaleRun{t: t, c: kubetest.Shared(t), pacer: pacerBinary(t), nodes: 10}
	jobs, events := 50, 5
	if livetest.Soak() {
		r.nodes, jobs, events = 1000, 5000, 600
	}
	r.reset()
	bareFull, bareRate := r.bare(jobs)

	r.reset()
	cmd, log := r.start()
	kubetest.Wait(t, "pacer", func() error {
		_, err := r.c.Client.CoordinationV1().Leases("default").Get(t.Context(), "pacer", meta.GetOptions{})
		return err
	})
	late := r.arrivals(events, 50*time.Millisecond)
	slices.Sort(late)
	r.end(cmd, log)

	r.reset()
	r.submit("job", jobs)
	p, began := r.watch(), time.Now()
	cmd, log = r.start()
	full, rate := p.wait(r, began)
	starts := strings.Count(log.String(), " Started ")
	cpu, bytes := r.end(cmd, log)
	if starts < r.nodes {
		t.Errorf("%d starts on %d nodes", starts, r.nodes)
	}
	began = time.Now()
	cmd, log = r.start("--once")
	if err := cmd.Wait(); err != nil {
		t.Errorf("a cold start: %v: %.2000s", err, log)
	}
	cold := time.Since(began)
	t.Logf("%d nodes, %d jobs: full after %.1f s, bare %.1f s: ratio %.2f; %.0f writes/s, bare %.0f: ratio %.2f; processor %.1f s, memory %d MB; cold start %.1f s; %d arrivals at 20/s: started after %v (median), %v (p99)",
		r.nodes, jobs, full.Seconds(), bareFull.Seconds(), full.Seconds()/bareFull.Seconds(), rate, bareRate, rate/bareRate, cpu.Seconds(), bytes>>20, cold.Seconds(),
		events, late[events/2].Round(time.Millisecond), late[events*99/100].Round(time.Millisecond))
}
