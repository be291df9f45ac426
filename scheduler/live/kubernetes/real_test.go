package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/client-go/kubernetes"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

func TestMain(m *testing.M) {
	if os.Getenv("PACER_TEST_KILL") != "" {
		killChild()
		return
	}
	kubetest.Main(m)
}

const accelerator = "A100"

// world has the speeds of models a, b and c on 1 to 8 devices of nodes with 4.
func world() *schedulertest.World {
	w := &schedulertest.World{}
	for m, model := range []string{"a", "b", "c"} {
		for n := 1; n <= 8; n *= 2 {
			w.Add(model, accelerator, schedulertest.OnePlan(n), spec.Packed(n, 4), 0.3*float64(m+1)*float64(n)/(1+0.1*float64(m*n)))
		}
	}
	return w
}

// options are those of the engine: models are their names.
func options() kubernetes.Options {
	return kubernetes.Options{
		Model: func(name string) (spec.Model, error) {
			if !slices.Contains([]string{"a", "b", "c"}, name) {
				return spec.Model{}, fmt.Errorf("unknown model %q", name)
			}
			return spec.Model{Name: name}, nil
		},
		NodeType: func(string, int) (spec.NodeGroup, error) {
			return spec.NodeGroup{Accelerator: spec.Accelerator{Name: accelerator}}, nil
		},
	}
}

// job returns a job of a model, on devices in pods of at most 4.
func job(name, model string, devices, steps int, command ...string) *batch.Job {
	pods := (devices + 3) / 4
	return kubetest.Job(name, pods, devices/pods, map[string]string{
		"model": model, "steps": fmt.Sprint(steps), "plan": schedulertest.OnePlan(devices).String()}, command...)
}

// fresh returns the shared cluster without objects, with nodes of 4 devices.
func fresh(t *testing.T, nodes int) *kubetest.Cluster {
	t.Helper()
	c := kubetest.Shared(t)
	c.Reset(t)
	c.AddNodes(t, nodes, 4)
	return c
}

// pacer is a controller that runs.
type pacer struct {
	engine *kubernetes.Cluster
	stop   func()

	mu     sync.Mutex
	events []live.Event
	report live.Report
	ahead  time.Duration // of the clock
}

// now is the clock of the controller.
func (p *pacer) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.ahead)
}

// later moves the clock on.
func (p *pacer) later(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead += by
}

// last returns the report of the last tick.
func (p *pacer) last() live.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.report
}

// of returns the events of a kind.
func (p *pacer) of(kind live.EventKind) (out []live.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// story says what is known of a job.
func (p *pacer) story(j *batch.Job) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "job %s, suspended: %v, record: %s, status: %+v, last report: %+v", j.Name, *j.Spec.Suspend, j.Annotations[kubernetes.RecordAnnotation], j.Status, p.report)
	for _, e := range p.events {
		if strings.HasSuffix(e.Object, "/"+j.Name) || e.Job == nil {
			fmt.Fprintf(&b, "\n\t%s %s %s: %s", e.At.Format(time.StampMilli), e.Kind, e.Object, e.Message)
		}
	}
	return b.String()
}

// newPacer returns a controller of a policy, with an engine that has read the cluster.
func newPacer(ctx context.Context, client kube.Interface, name string, writers int) (*pacer, *live.Controller, error) {
	engine, err := kubernetes.New(client, options())
	if err != nil {
		return nil, nil, err
	}
	if err := engine.Run(ctx); err != nil {
		return nil, nil, err
	}
	p := &pacer{engine: engine}
	w := world()
	c, err := live.New(live.Options{
		Cluster: engine, Writers: writers, StaleAfter: 2 * time.Hour, Now: p.now, Resync: time.Second,
		Policy: func(spec.Cluster) (scheduler.Policy, error) {
			packed, err := place.Lookup("")
			if err != nil {
				return nil, err
			}
			return builtin.Policies.New(policy.Spec{Name: name}, policy.Deps{Oracle: w.Oracle(0, 1), Placer: place.Even(packed), Seed: 1})
		},
		OnEvent: func(e live.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.events = append(p.events, e)
		},
		OnTick: func(r live.Report) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.report = r
		},
	})
	return p, c, err
}

// startPacer runs a controller until the end of the test or stop.
func startPacer(t *testing.T, c *kubetest.Cluster, name string) *pacer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p, controller, err := newPacer(ctx, c.Client, name, 0)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := controller.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	p.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(p.stop)
	return p
}

// jobs returns the jobs of the default namespace by name.
func jobs(t *testing.T, c *kubetest.Cluster) map[string]*batch.Job {
	t.Helper()
	list, err := c.Client.BatchV1().Jobs("default").List(context.Background(), meta.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*batch.Job{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// podsOf returns the pods of a job that are not being deleted.
func podsOf(t *testing.T, c *kubetest.Cluster, job string) []core.Pod {
	t.Helper()
	list, err := c.Client.CoreV1().Pods("default").List(context.Background(), meta.ListOptions{LabelSelector: batch.JobNameLabel + "=" + job})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p core.Pod) bool { return p.DeletionTimestamp != nil })
}

// runsAsRecorded returns an error unless the job runs with its target, each pod on its node with
// its devices and its plan.
func runsAsRecorded(t *testing.T, c *kubetest.Cluster, j *batch.Job) error {
	t.Helper()
	r, err := live.ParseRecord(j.Annotations[kubernetes.RecordAnnotation])
	if err != nil {
		return err
	}
	switch {
	case r.Plan == "" || r.RunGeneration == 0:
		return fmt.Errorf("job %s has no target, or was not started: %s", j.Name, r)
	case *j.Spec.Suspend || j.Status.Ready == nil || *j.Status.Ready != *j.Spec.Parallelism:
		return fmt.Errorf("job %s is not ready: %+v", j.Name, j.Status)
	}
	on := live.Slots{}
	for _, p := range podsOf(t, c, j.Name) {
		devices := p.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		on[p.Spec.NodeName] += int(devices.Value())
		if got := p.Annotations[kubernetes.PlanAnnotation]; got != r.RunPlan {
			return fmt.Errorf("job %s: a pod has plan %q, want %q", j.Name, got, r.RunPlan)
		}
	}
	if on.String() != r.Slots.String() || r.Slots.String() != r.RunSlots.String() {
		return fmt.Errorf("job %s runs on %s, its target is %s, it was started on %s", j.Name, on, r.Slots, r.RunSlots)
	}
	return nil
}

// ended reports whether a job is complete, and fails the test if it failed.
func ended(t *testing.T, j *batch.Job) bool {
	t.Helper()
	for _, c := range j.Status.Conditions {
		if c.Type == batch.JobFailed && c.Status == core.ConditionTrue {
			t.Fatalf("job %s failed: %s", j.Name, c.Message)
		}
		if c.Type == batch.JobComplete && c.Status == core.ConditionTrue {
			return true
		}
	}
	return false
}

// TestPolicies runs jobs to their end under three policies on a real Kubernetes.
func TestPolicies(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 12
	}
	for _, name := range []string{"fifo", "rubick", "pacer"} {
		t.Run(name, func(t *testing.T) {
			c := fresh(t, 4)
			p := startPacer(t, c, name)
			for i := range n {
				devices := []int{1, 1, 2, 4, 8}[i%5]
				c.Submit(t, job(fmt.Sprintf("j%d", i), []string{"a", "b", "c"}[i%3], devices, 2, "sleep", "0.3"))
			}
			began := time.Now()
			kubetest.Wait(t, name, func() error {
				left, one := 0, ""
				for _, j := range jobs(t, c) {
					if !ended(t, j) {
						left++
						one = p.story(j)
					}
				}
				if left > 0 {
					return fmt.Errorf("%d of %d jobs have not ended; %s", left, n, one)
				}
				return nil
			})
			for kind, name := range map[live.EventKind]string{live.Refused: "refused", live.PolicyFailed: "failed", live.Faulty: "faulty"} {
				if e := p.of(kind); len(e) > 0 {
					t.Errorf("%d events that are %s, such as %s: %s", len(e), name, e[0].Object, e[0].Message)
				}
			}
			if got := len(p.of(live.StartedJob)); got < n {
				t.Errorf("%d starts of %d jobs", got, n)
			}
			t.Logf("%d jobs in %v, %d starts, %d stops", n, time.Since(began).Round(time.Millisecond), len(p.of(live.StartedJob)), len(p.of(live.StoppedJob)))
		})
	}
}

// TestPlacement: every pod of a job on several nodes is on the node of the decision, though these
// nodes are not the ones that the scheduler of Kubernetes would take.
func TestPlacement(t *testing.T) {
	c := fresh(t, 4)
	other := job("other", "a", 1, 1) // not ours: it has one device of n0
	delete(other.Labels, kubernetes.ManagedLabel)
	*other.Spec.Suspend = false
	other.Spec.Template.Spec.NodeSelector = map[string]string{core.LabelHostname: "n0"}
	c.Submit(t, other)
	kubetest.Wait(t, "other", func() error {
		if j := jobs(t, c)["other"]; j.Status.Ready == nil || *j.Status.Ready != 1 {
			return errors.New("does not run")
		}
		return nil
	})
	startPacer(t, c, "fifo")
	c.Submit(t, job("wide", "a", 8, 1000))
	c.Submit(t, job("small", "b", 2, 1000))
	kubetest.Wait(t, "jobs", func() error {
		all := jobs(t, c)
		return errors.Join(runsAsRecorded(t, c, all["wide"]), runsAsRecorded(t, c, all["small"]))
	})
	for _, p := range podsOf(t, c, "wide") {
		if p.Spec.NodeName == "n0" {
			t.Errorf("pod %s is on n0, where 3 devices are left", p.Name)
		}
	}
	if j := jobs(t, c)["other"]; j.Annotations[kubernetes.RecordAnnotation] != "" {
		t.Errorf("a job that is not managed was written: %v", j.Annotations)
	}
}

// TestFaultyJob: a job that cannot be used gets an event and is left, others run.
func TestFaultyJob(t *testing.T) {
	c := fresh(t, 1)
	p := startPacer(t, c, "fifo")
	bad := job("bad", "nope", 1, 1)
	bad.Annotations[kubernetes.StepsAnnotation] = "many"
	c.Submit(t, bad)
	c.Submit(t, job("good", "a", 1, 1000))
	kubetest.Wait(t, "good", func() error { return runsAsRecorded(t, c, jobs(t, c)["good"]) })
	kubetest.Wait(t, "event", func() error {
		for _, e := range p.of(live.Faulty) {
			if strings.Contains(e.Object, "default/bad") && strings.Contains(e.Message, `unknown model "nope"`) {
				return nil
			}
		}
		return errors.New("no event names the job and the model")
	})
	if j := jobs(t, c)["bad"]; !*j.Spec.Suspend || j.Annotations[kubernetes.RecordAnnotation] != "" {
		t.Errorf("the faulty job was written: %+v", j)
	}
	for _, want := range []struct{ job, reason, says string }{{"good", string(live.StartedJob), "on n0=1"}, {"bad", string(live.Faulty), `unknown model "nope"`}} {
		kubetest.Wait(t, "event of Kubernetes of "+want.job, func() error {
			list, err := c.Client.CoreV1().Events("default").List(t.Context(), meta.ListOptions{FieldSelector: "involvedObject.name=" + want.job})
			if err != nil {
				return err
			}
			for _, e := range list.Items {
				if e.Reason == want.reason && strings.Contains(e.Message, want.says) {
					return nil
				}
			}
			return fmt.Errorf("%d events, none %s with %q", len(list.Items), want.reason, want.says)
		})
	}
}
