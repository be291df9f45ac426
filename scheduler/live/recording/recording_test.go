package recording_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/live/recording"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// run is a recording under way.
type run struct {
	t    testing.TB
	tr   *livetest.Trace
	c    *livetest.Cluster
	path string
	w    *recording.Writer // nil = pacer is away
}

// recorded drives a cluster in memory by a policy and returns the file of its recording. step, if set, is called before
// each tick; it ends the recording by true.
func recorded(t testing.TB, tr *livetest.Trace, policy string, step func(*run) bool) string {
	t.Helper()
	r := &run{t: t, tr: tr, c: livetest.New(livetest.Epoch, tr.Nodes()...), path: filepath.Join(t.TempDir(), "record.jsonl")}
	r.open()
	controller, err := live.New(live.Options{
		Cluster: r.c, StartCost: tr.Cost, Epoch: livetest.Epoch, Now: r.c.Now,
		OnState: func(at time.Time, s *live.State) {
			if r.w != nil {
				r.w.Observe(at, s)
			}
		},
		Policy: func(spec.Cluster) (scheduler.Policy, error) { return tr.Policy(t, policy), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	tr.Drive(t, r.c, controller, func() bool { return step != nil && step(r) })
	r.close()
	return r.path
}

func (r *run) open() {
	r.t.Helper()
	r.w = newWriter(r.t, r.path, recording.Session{Policy: "p", StartSec: r.tr.Cost.Seconds()})
}

func (r *run) close() {
	r.t.Helper()
	if err := r.w.Close(r.c.Now()); err != nil {
		r.t.Fatal(err)
	}
	r.w = nil
}

// at returns the time since the trace began.
func (r *run) at() time.Duration { return r.c.Now().Sub(livetest.Epoch) }

// newWriter returns a writer of the recording at path, which may exist.
func newWriter(t testing.TB, path string, s recording.Session) (w *recording.Writer) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err == nil {
		w, err = recording.NewWriter(f, s, func(err error) { t.Error(err) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t *testing.T, path string) *recording.Recording {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(bytes.NewReader(text), "f", recording.Window{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// replay simulates a recording under a policy, and returns the run as it was beside it.
func replay(t *testing.T, tr *livetest.Trace, r *recording.Recording, policy string) (was, is *sim.Result) {
	t.Helper()
	jobs := r.Requests()
	truth, err := r.Calibrate(t.Context(), tr.World.Truth(r.Cluster), jobs)
	if err != nil {
		t.Fatal(err)
	}
	if all := truth.Relative; len(r.Failures)+len(r.Usage) == 0 && (len(all) < len(jobs)/2 || all[0] < 1-1e-6 || all[len(all)-1] > 1+1e-6) {
		t.Errorf("relative speeds %v, want 1", all)
	}
	return r.Result(jobs), simulate(t, tr, r, policy, truth, jobs)
}

// simulate simulates jobs of a recording under a policy.
func simulate(t *testing.T, tr *livetest.Trace, r *recording.Recording, policy string, truth sim.Truth, jobs []spec.Job) *sim.Result {
	t.Helper()
	out, err := sim.Run(t.Context(), sim.Config{
		Cluster: r.Cluster, Jobs: jobs, Policy: tr.Policy(t, policy), PolicyName: policy, Truth: truth, Audit: true, Observe: func(sim.Event) {},
		Costs: sim.PerStart(func(spec.Job) time.Duration { return tr.Cost }), Failures: r.Failures, Maintenance: r.Drains, Others: r.Usage, Cancel: r.Cancellations(),
		Score: func(id spec.JobID) bool {
			i := slices.IndexFunc(r.Jobs, func(j recording.Job) bool { return j.ID == id })
			return r.Jobs[i].Counts()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// differing describes the jobs with other starts or ends, beyond the rounding of speeds, or other counts of restarts.
func differing(t *testing.T, was, is *sim.Result) (out []string) {
	t.Helper()
	if len(was.Jobs) != len(is.Jobs) {
		t.Fatalf("%d jobs, replayed %d", len(was.Jobs), len(is.Jobs))
	}
	for i := range was.Jobs {
		a, b := &was.Jobs[i], &is.Jobs[i]
		if a.Job.ID != b.Job.ID || a.Finished != b.Finished {
			t.Fatalf("job %s finished %v, replayed %s %v", a.Job.ID, a.Finished, b.Job.ID, b.Finished)
		}
		if (a.Start-b.Start).Abs() > time.Millisecond || (a.End-b.End).Abs() > time.Millisecond || a.Restarts != b.Restarts || a.Preemptions != b.Preemptions {
			out = append(out, fmt.Sprintf("job %s: %v to %v, %d restarts, %d preemptions; replayed %v to %v, %d, %d",
				a.Job.ID, a.Start, a.End, a.Restarts, a.Preemptions, b.Start, b.End, b.Restarts, b.Preemptions))
		}
	}
	return out
}

// TestReplay: under the policy that was recorded every job starts and ends as it did; under another one it does not.
func TestReplay(t *testing.T) {
	for _, policy := range []string{"fifo", "srtf", "gavel-las", "optimus", "rubick", "sia", "pacer"} {
		t.Run(policy, func(t *testing.T) {
			tr := livetest.NewTrace(60, 3)
			r := read(t, recorded(t, tr, policy, nil))
			if len(r.Jobs) != 60 || r.Sessions != 1 || len(r.Notes()) > 0 {
				t.Fatalf("%d jobs, %d sessions, notes %q", len(r.Jobs), r.Sessions, r.Notes())
			}
			was, is := replay(t, tr, r, policy)
			if diff := differing(t, was, is); len(diff) > 0 {
				t.Errorf("%d jobs differ:\n%s", len(diff), strings.Join(diff, "\n"))
			}
			if is.Usage[len(is.Usage)-1].At.Round(time.Second) != was.Usage[len(was.Usage)-1].At.Round(time.Second) {
				t.Errorf("ends at %v, replayed at %v", was.Usage[len(was.Usage)-1], is.Usage[len(is.Usage)-1])
			}
			other := "fifo"
			if policy == other {
				other = "srtf"
			}
			was, is = replay(t, tr, r, other)
			if len(differing(t, was, is)) == 0 {
				t.Errorf("equal under %s", other)
			}
		})
	}
}

// TestOpenJobs: jobs that have not ended when the recording does are replayed and counted apart. The others start and end
// as they did, since the former go on at the speed that their progress shows.
func TestOpenJobs(t *testing.T) {
	tr := livetest.NewTrace(60, 3)
	r := read(t, recorded(t, tr, "rubick", func(r *run) bool { return r.at() > 40*time.Minute }))
	open := 0
	for i := range r.Jobs {
		if !r.Jobs[i].Ended {
			open++
		}
	}
	want := fmt.Sprintf("%d jobs had not ended when the recording did: replayed, but not counted", open)
	if open < 5 || len(r.Jobs)-open < 20 || !slices.Equal(r.Notes(), []string{want}) {
		t.Fatalf("%d of %d jobs are open: %q", open, len(r.Jobs), r.Notes())
	}
	was, is := replay(t, tr, r, "rubick")
	for _, result := range []*sim.Result{was, is} {
		result.Jobs = slices.DeleteFunc(result.Jobs, func(j sim.JobRecord) bool { return !j.Scored })
	}
	if diff := differing(t, was, is); len(diff) > 0 || len(was.Jobs) != len(r.Jobs)-open {
		t.Errorf("%d of %d jobs differ:\n%s", len(diff), len(was.Jobs), strings.Join(diff, "\n"))
	}
}

// TestAway: a recording is continued by another session after a kill. Jobs that ended meanwhile end when pacer is back.
func TestAway(t *testing.T) {
	tr := livetest.NewTrace(60, 3)
	const from, to = 20 * time.Minute, 25 * time.Minute
	r := read(t, recorded(t, tr, "fifo", func(r *run) bool {
		switch at := r.at(); {
		case r.w != nil && at > from && at < to:
			r.close()
			f, err := os.OpenFile(r.path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteString(`{"at":"2026-01-01T00:2`); err != nil {
				t.Fatal(err)
			}
		case r.w == nil && at >= to:
			r.open()
		}
		return false
	}))
	if r.Sessions != 2 || r.Torn != 1 || len(r.Jobs) != 60 || r.Away < 4*time.Minute || r.Away > 6*time.Minute || len(r.Notes()) != 2 {
		t.Fatalf("%d sessions, %d torn lines, %d jobs, %v away: %q", r.Sessions, r.Torn, len(r.Jobs), r.Away, r.Notes())
	}
	whole := read(t, recorded(t, tr, "fifo", nil))
	for i := range whole.Jobs {
		a, b := &whole.Jobs[i], &r.Jobs[i]
		end := a.Runs[0].End
		if end > from && end <= to+time.Minute {
			continue // not seen
		}
		if len(b.Runs) != 1 || a.Runs[0].Start != b.Runs[0].Start || end != b.Runs[0].End {
			t.Errorf("job %s ran %v to %v, recorded %+v", a.ID, a.Runs[0].Start, end, b.Runs)
		}
	}
}

// TestEarlyJobs: jobs that ran before the recording began are not counted.
func TestEarlyJobs(t *testing.T) {
	tr := livetest.NewTrace(60, 3)
	r := read(t, recorded(t, tr, "fifo", func(r *run) bool {
		if r.at() < 20*time.Minute && r.w != nil {
			r.close()
			if err := os.Truncate(r.path, 0); err != nil {
				t.Fatal(err)
			}
		}
		if r.at() >= 20*time.Minute && r.w == nil {
			r.open()
		}
		return false
	}))
	early := 0
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if j.Early != (j.Runs[0].Start <= r.From) || j.Runs[0].Start < r.From {
			t.Errorf("job %s, early %v, ran from %v, recorded from %v", j.ID, j.Early, j.Runs[0].Start, r.From)
		}
		if j.Early {
			early++
		}
	}
	if early < 4 || early > 32 || len(r.Notes()) != 1 {
		t.Errorf("%d early jobs: %q", early, r.Notes())
	}
	for node := range r.Cluster.Nodes() {
		if o := r.Failures[node]; len(o) != 1 || o[0].Down != 0 || o[0].Up != r.From {
			t.Errorf("node %d is down %+v, want until %v", node, o, r.From)
		}
	}
	r.Failures = nil // of its beginning
	replay(t, tr, r, "fifo")
}

// TestNodes: outages are those of nodes that went down, were drained, joined and left.
func TestNodes(t *testing.T) {
	tr := livetest.NewTrace(30, 3)
	mode := func(name string, m live.Mode) func(*livetest.Cluster) {
		return func(c *livetest.Cluster) { c.SetNode(name, func(n *live.Node) { n.Mode = m }) }
	}
	steps := []struct {
		at time.Duration
		do func(*livetest.Cluster)
	}{
		{5 * time.Minute, mode("x1", live.Down)},
		{6 * time.Minute, mode("x1", live.Up)},
		{7 * time.Minute, mode("x2", live.Draining)},
		{9 * time.Minute, mode("x2", live.Down)},
		{10 * time.Minute, mode("x2", live.Up)},
		{11 * time.Minute, mode("y0", live.Draining)},
		{12 * time.Minute, mode("y0", live.Up)},
		{13 * time.Minute, func(c *livetest.Cluster) { c.SetNode("y3", func(n *live.Node) { n.UsedDevices = 2 }) }},
		{14 * time.Minute, func(c *livetest.Cluster) { c.SetNode("y3", func(n *live.Node) { n.UsedDevices = 0 }) }},
	}
	var when []time.Duration
	r := read(t, recorded(t, tr, "fifo", func(r *run) bool {
		for len(when) < len(steps) && r.at() >= steps[len(when)].at {
			steps[len(when)].do(r.c)
			when = append(when, r.at())
		}
		return false
	}))
	if len(when) != len(steps) {
		t.Fatalf("%d steps", len(when))
	}
	if len(r.Failures) != 1 || len(r.Failures[1]) != 1 || len(r.Drains) != 1 || len(r.Drains[2]) != 1 {
		t.Fatalf("failures %+v, drains %+v", r.Failures, r.Drains)
	}
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if late := got - want; late < 0 || late > 30*time.Second {
			t.Errorf("%s %v, want %v", what, got, want)
		}
	}
	near("x1 down", r.Failures[1][0].Down, when[0])
	near("x1 up", r.Failures[1][0].Up, when[1])
	near("x2 down", r.Drains[2][0].Down, when[3])
	near("x2 up", r.Drains[2][0].Up, when[4])
	near("x2 drained", r.Drains[2][0].Down-r.Drains[2][0].Notice, when[2])
	if used := (when[8] - when[7]).Seconds() * 2; r.Others < used-60 || r.Others > used+60 {
		t.Errorf("others held %g device-seconds, want %g", r.Others, used)
	}
	failures := 0
	for i := range r.Jobs {
		failures += r.Jobs[i].Failures
	}
	if failures < 1 {
		t.Error("no job was lost")
	}
	if _, is := replay(t, tr, r, "fifo"); len(is.Jobs) != 30 {
		t.Errorf("%d jobs replayed", len(is.Jobs))
	}
}

// TestWindow: a part of a recording is what one that began and ended with it would be.
func TestWindow(t *testing.T) {
	tr := livetest.NewTrace(60, 3)
	const from, to = 20 * time.Minute, 40 * time.Minute
	path := recorded(t, tr, "rubick", func(r *run) bool {
		if r.at() > 25*time.Minute {
			r.c.SetNode("x0", func(n *live.Node) { n.Mode = live.Down })
		}
		return false
	})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := read(t, path)
	r, err := recording.Read(bytes.NewReader(text), "f", recording.Window{From: from, To: to})
	if err != nil {
		t.Fatal(err)
	}
	begins := r.From // the waiting job that was submitted first is older
	if length := r.To - begins; length != to-from || r.Sessions != 1 {
		t.Fatalf("from %v to %v, %d sessions", begins, r.To, r.Sessions)
	}
	byID := map[spec.JobID]*recording.Job{}
	for i := range r.Jobs {
		byID[r.Jobs[i].ID] = &r.Jobs[i]
	}
	counts, early, open := 0, 0, 0
	for i := range whole.Jobs {
		a := &whole.Jobs[i]
		first, last := a.Runs[0].Start, a.Runs[len(a.Runs)-1].End
		b := byID[a.ID]
		if last <= from || a.Submit > to {
			if b != nil {
				t.Errorf("job %s ran %v to %v, and is in the window", a.ID, first, last)
			}
			continue
		}
		if b == nil || b.Early != (first < from) || b.Ended != (last < to) {
			t.Fatalf("job %s ran %v to %v: %+v", a.ID, first, last, b)
		}
		switch {
		case b.Early:
			early++
		case !b.Ended:
			open++
		default:
			counts++
			for k, run := range b.Runs {
				if w := a.Runs[k]; run.Start-begins != w.Start-from || run.End-begins != w.End-from || len(a.Runs) != len(b.Runs) {
					t.Errorf("job %s ran %v to %v, in the window %v to %v", a.ID, w.Start, w.End, run.Start, run.End)
				}
			}
			if a.Restarts != b.Restarts || a.Preemptions != b.Preemptions {
				t.Errorf("job %s: %d restarts, %d preemptions; in the window %d, %d", a.ID, a.Restarts, a.Preemptions, b.Restarts, b.Preemptions)
			}
		}
	}
	if counts < 5 || early < 3 || open < 3 {
		t.Errorf("%d count, %d are early, %d open", counts, early, open)
	}
	if o := r.Failures[0]; len(o) == 0 || o[len(o)-1].Down-begins != whole.Failures[0][0].Down-from || o[len(o)-1].Up != r.To || whole.Failures[0][0].Up != whole.To {
		t.Errorf("x0 is down %+v, in the whole %+v", o, whole.Failures[0])
	}
	replay(t, tr, r, "rubick")
	if _, err := recording.Read(bytes.NewReader(text), "f", recording.Window{From: 1000 * time.Hour}); err == nil || !strings.Contains(err.Error(), "the window begins after 1000h0m0s") {
		t.Errorf("after the end: %v", err)
	}
}
