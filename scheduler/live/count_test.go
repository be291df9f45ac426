package live_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// director is a policy that grants each job one device of a node, every second.
type director struct {
	node     map[spec.JobID]int // index, -1 = none
	warnings []string
	why      string                      // of jobs without a node
	saw      func(s *scheduler.Snapshot) // called by Decide, nil = not
}

func (p *director) Decide(_ context.Context, s *scheduler.Snapshot) (d scheduler.Decision, err error) {
	if p.saw != nil {
		p.saw(s)
	}
	for _, j := range s.Jobs() {
		if n := p.node[j.Job.ID]; n >= 0 {
			d.Grants = append(d.Grants, &scheduler.Grant{Job: j.Job.ID, Plan: schedulertest.OnePlan(1), Shape: spec.NewShape(1), Slots: []scheduler.Slot{{Node: n, Devices: 1}}})
		} else if p.why != "" {
			d.Because(s, j.Job.ID, "%s", p.why)
		}
	}
	d.Warnings, d.Wake = p.warnings, s.Now+time.Second
	return d, nil
}

// directed is a controller under a director, with some jobs on a cluster of two nodes.
type directed struct {
	*director
	t      *testing.T
	c      *livetest.Cluster
	live   *live.Controller
	events []live.Event
}

func newDirected(t *testing.T, jobs int, change func(*live.Options)) *directed {
	r := &directed{director: &director{node: map[spec.JobID]int{}}, t: t}
	group := spec.NodeGroup{Devices: jobs, Accelerator: spec.Accelerator{Name: "x"}}
	r.c = livetest.New(livetest.Epoch, live.Node{Name: "x0", Type: group}, live.Node{Name: "x1", Type: group})
	r.c.Violation = func(text string) { t.Error(text) }
	for i := range jobs {
		j := spec.Job{ID: spec.JobID(fmt.Sprintf("j%d", i)), Model: spec.Model{Name: "a"}, Devices: 1, Steps: 1e6}
		r.c.Submit(j, 0, 1e6, func(string, live.Slots) float64 { return 1 })
	}
	o := live.Options{
		Cluster: r.c, Epoch: livetest.Epoch, Now: r.c.Now, Writers: 2, OnEvent: func(e live.Event) { r.events = append(r.events, e) },
		Policy: func(spec.Cluster) (scheduler.Policy, error) { return r.director, nil },
	}
	if change != nil {
		change(&o)
	}
	var err error
	if r.live, err = live.New(o); err != nil {
		t.Fatal(err)
	}
	return r
}

// run lets the controller act for some seconds.
func (r *directed) run(seconds int) {
	r.t.Helper()
	for range 2 * seconds {
		r.c.Advance(r.c.Now().Add(500 * time.Millisecond))
		if _, err := r.live.Tick(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *directed) count(kind live.EventKind) (n int) {
	for _, e := range r.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// refusing is a cluster that refuses the first stops.
type refusing struct {
	*livetest.Cluster
	refuses *int
}

func (s refusing) Stop(ctx context.Context, j *live.Job) error {
	if *s.refuses--; *s.refuses >= 0 {
		return errors.New("no answer")
	}
	return s.Cluster.Stop(ctx, j)
}

// TestFailedStops: a restart counts once, however often the request to stop the job fails, and the failure is one event.
func TestFailedStops(t *testing.T) {
	refuses := 6
	r := newDirected(t, 2, func(o *live.Options) {
		o.MaxRestarts, o.Cluster = 2, refusing{o.Cluster.(*livetest.Cluster), &refuses}
	})
	r.run(2)
	r.node["j0"] = 1
	r.run(10)
	r.node["j1"] = 1
	r.run(10)
	for _, j := range r.c.Jobs() {
		if j.Phase != live.Running || j.Slots.String() != "x1=1" || j.Record.Restarts != 1 {
			t.Errorf("job %s is %s on %s after %d restarts", j.Spec.ID, j.Phase, j.Slots, j.Record.Restarts)
		}
	}
	if s := r.live.Stats(); s.Stops != 2 || s.FailedWrites != 6 || r.count(live.WriteFailed) != 1 || r.count(live.Delayed) != 0 {
		t.Errorf("%+v, %d failed writes and %d delays are reported", s, r.count(live.WriteFailed), r.count(live.Delayed))
	}
	r.node["j1"] = 0
	r.run(10)
	if r.count(live.Delayed) != 1 {
		t.Errorf("%d delays of a third restart", r.count(live.Delayed))
	}
}

// TestNodeLost: a node that is lost is one failure of its job, and no restart, whether the cluster ends the job at once or
// shows it as running for some time.
func TestNodeLost(t *testing.T) {
	for _, shown := range []bool{false, true} {
		r := newDirected(t, 1, func(o *live.Options) { o.MaxRestarts = 1 })
		r.run(2)
		r.node["j0"] = -1
		r.c.SetNode("x0", func(n *live.Node) { n.Mode = live.Down })
		if shown {
			now := r.c.Now()
			r.c.Edit("j0", func(j *live.Job) { j.Phase, j.Slots, j.Started = live.Running, live.Slots{"x0": 1}, now })
		}
		r.run(4)
		r.node["j0"] = 1
		r.run(4)
		j := r.c.Jobs()[0]
		if j.Phase != live.Running || j.Slots.String() != "x1=1" || j.Record.Failures != 1 || j.Record.Restarts != 0 {
			t.Errorf("shown %v: %s on %s after %d failures, %d restarts", shown, j.Phase, j.Slots, j.Record.Failures, j.Record.Restarts)
		}
		if r.live.Stats().Lost != 1 || r.count(live.Lost) != 1 {
			t.Errorf("shown %v: lost %d times, reported %d times", shown, r.live.Stats().Lost, r.count(live.Lost))
		}
		r.c.SetNode("x0", func(n *live.Node) { n.Mode = live.Up })
		r.node["j0"] = 0
		r.run(4)
		if j := r.c.Jobs()[0]; j.Slots.String() != "x0=1" || j.Record.Failures != 1 || j.Record.Restarts != 1 {
			t.Errorf("shown %v: moved by a decision: on %s after %d failures, %d restarts", shown, j.Slots, j.Record.Failures, j.Record.Restarts)
		}
	}
}

// TestFaultsOnce: several faults of one object are each reported once.
func TestFaultsOnce(t *testing.T) {
	r := newDirected(t, 1, nil)
	r.warnings = []string{"first", "second"}
	r.run(10)
	if s := r.live.Stats(); r.count(live.Faulty) != 2 || s.Decisions < 9 {
		t.Errorf("%d faults are reported in %d decisions", r.count(live.Faulty), s.Decisions)
	}
}

// TestFaultyPlanner: a planner that is faulty for a while is reported once each time, and in every report meanwhile; so is a job
// that cannot be used.
func TestFaultyPlanner(t *testing.T) {
	var fault error
	var last live.Report
	r := newDirected(t, 1, func(o *live.Options) {
		o.Planner = func() error { return fault }
		o.OnTick = func(r live.Report) { last = r }
	})
	for i, text := range []string{"", "no answer", "", "no answer"} {
		if fault = nil; text != "" {
			fault = errors.New(text)
		}
		r.run(3)
		if got, want := strings.Join(last.Faulty, " "), map[bool]string{true: "planner"}[text != ""]; got != want || r.count(live.Faulty) != (i+1)/2 {
			t.Errorf("%d: faulty %q, want %q; %d events", i, got, want, r.count(live.Faulty))
		}
	}
	r.c.Edit("j0", func(j *live.Job) { j.Spec.Devices = -1 })
	r.run(3)
	if got := strings.Join(last.Faulty, ", "); got != "job j0, planner" || r.count(live.Faulty) != 3 {
		t.Errorf("faulty %q, %d events", got, r.count(live.Faulty))
	}
}

// silent is a cluster that does not answer writes.
type silent struct {
	*livetest.Cluster
	writes chan struct{}
}

func (s silent) Record(context.Context, *live.Job, live.Record) error {
	s.writes <- struct{}{}
	return fmt.Errorf("no answer: %w", context.DeadlineExceeded)
}

// TestSilentCluster: if a write gets no answer in time the others are not tried before the next step, which would add
// their times up.
func TestSilentCluster(t *testing.T) {
	writes := make(chan struct{}, 1000)
	r := newDirected(t, 100, func(o *live.Options) { o.Cluster = silent{o.Cluster.(*livetest.Cluster), writes} })
	next, err := r.live.Tick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tried := len(writes)
	if tried < 1 || tried > 2 || r.live.Stats().FailedWrites != tried {
		t.Errorf("%d writes are tried by two writers, %+v", tried, r.live.Stats())
	}
	if wait := next.Sub(r.c.Now()); wait > time.Second {
		t.Errorf("they are tried again after %v", wait)
	}
}

// unreachable is a cluster that cannot be observed.
type unreachable struct {
	*livetest.Cluster
	observed chan struct{}
}

func (u unreachable) Observe(context.Context) (*live.State, error) {
	u.observed <- struct{}{}
	return nil, errors.New("no answer")
}

// TestUnreachable: a cluster that cannot be observed is reported once while that lasts.
func TestUnreachable(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	observed := make(chan struct{})
	r := newDirected(t, 1, func(o *live.Options) {
		o.Cluster, o.Now = unreachable{o.Cluster.(*livetest.Cluster), observed}, time.Now
	})
	done := make(chan error)
	go func() { done <- r.live.Run(ctx) }()
	for range 3 {
		<-observed
	}
	stop()
	for ended := false; !ended; {
		select {
		case err := <-done:
			if ended = true; err != nil {
				t.Error(err)
			}
		case <-observed:
		}
	}
	if i := slices.IndexFunc(r.events, func(e live.Event) bool { return e.Object != "cluster" }); len(r.events) != 1 || i >= 0 {
		t.Errorf("events %+v", r.events)
	}
}

// TestWaiting: a job that waits is reported once, with the reason, until it has had a target.
func TestWaiting(t *testing.T) {
	r := newDirected(t, 2, nil)
	r.why = "no room"
	r.node["j1"] = -1
	r.run(5)
	waits := func() (out []string) {
		for _, e := range r.events {
			if e.Kind == live.Waiting {
				out = append(out, e.Object+": "+e.Message)
			}
		}
		return out
	}
	if got := waits(); !slices.Equal(got, []string{"job j1: no room"}) {
		t.Errorf("reported %q", got)
	}
	r.node["j1"] = 0
	r.run(5)
	r.node["j1"] = -1
	r.run(5)
	if got := waits(); !slices.Equal(got, []string{"job j1: no room", "job j1: no room"}) {
		t.Errorf("after it ran: reported %q", got)
	}
}

// TestWaitingOfDryRun: a dry run reports also a job that waits without a reason.
func TestWaitingOfDryRun(t *testing.T) {
	for _, dry := range []bool{false, true} {
		r := newDirected(t, 2, func(o *live.Options) { o.DryRun = dry })
		r.node["j1"] = -1
		r.run(5)
		var got []string
		for _, e := range r.events {
			if e.Kind == live.Waiting {
				got = append(got, e.Object+": "+e.Message)
			}
		}
		want := []string{"job j1: the policy gives no reason"}
		if !dry {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("dry run %v: reported %q, want %q", dry, got, want)
		}
	}
}

// failing is a director that fails so many times.
type failing struct {
	*director
	left int
}

func (p *failing) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if p.left--; p.left >= 0 {
		return scheduler.Decision{}, errors.New("the planner does not answer")
	}
	return p.director.Decide(ctx, s)
}

// TestRetry: a policy that fails is called again after a second, and later after up to ten; the first failure after a decision
// counts from a second again.
func TestRetry(t *testing.T) {
	p := &failing{left: 6}
	r := newDirected(t, 1, func(o *live.Options) {
		o.Policy = func(spec.Cluster) (scheduler.Policy, error) { return p, nil }
	})
	p.director = r.director
	pauses := func(n int) (out []time.Duration) {
		for range n {
			next, err := r.live.Tick(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, next.Sub(r.c.Now()))
			r.c.Advance(next)
		}
		return out
	}
	second := time.Second
	if got, want := pauses(6), []time.Duration{second, 2 * second, 4 * second, 8 * second, 10 * second, 10 * second}; !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
	pauses(2) // it decides
	p.left = 1
	if got := pauses(1); got[0] != second || r.live.Stats().Failed != 7 {
		t.Errorf("pause %v, %d failures", got, r.live.Stats().Failed)
	}
}
