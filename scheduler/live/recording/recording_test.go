package recording_test

import (
	"bytes"
	"errors"
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

// recorded drives a cluster in memory by a policy and returns the file of its recording. stop is that of Drive; change, if
// set, changes the observations that are recorded.
func recorded(t *testing.T, tr *livetest.Trace, policy string, stop func(*livetest.Cluster) bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.jsonl")
	c := livetest.New(livetest.Epoch, tr.Nodes()...)
	w := openWriter(t, path, tr)
	controller, err := live.New(live.Options{
		Cluster: c, StartCost: tr.Cost, Epoch: livetest.Epoch, Now: c.Now, OnState: w.Observe,
		Policy: func(spec.Cluster) (scheduler.Policy, error) { return tr.Policy(t, policy), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	tr.Drive(t, c, controller, func() bool { return stop != nil && stop(c) })
	if err := w.Close(c.Now()); err != nil {
		t.Fatal(err)
	}
	return path
}

func openWriter(t *testing.T, path string, tr *livetest.Trace) *recording.Writer {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	w, err := recording.NewWriter(f, recording.Session{Policy: "p", StartSec: tr.Cost.Seconds()}, func(err error) { t.Error(err) })
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
	r, err := recording.Read(bytes.NewReader(text), "f")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// replay simulates a recording under a policy, and returns the run as it was beside it.
func replay(t *testing.T, tr *livetest.Trace, r *recording.Recording, policy string) (was, is *sim.Result) {
	t.Helper()
	jobs, truth, err := r.Calibrate(t.Context(), tr.World.Truth(r.Cluster))
	if err != nil {
		t.Fatal(err)
	}
	is, err = sim.Run(t.Context(), sim.Config{
		Cluster: r.Cluster, Jobs: jobs, Policy: tr.Policy(t, policy), PolicyName: policy, Truth: truth, Audit: true, Observe: func(sim.Event) {},
		Costs: sim.PerStart(func(spec.Job) time.Duration { return tr.Cost }), Failures: r.Failures, Maintenance: r.Drains,
		Score: func(id spec.JobID) bool {
			i := slices.IndexFunc(r.Jobs, func(j recording.Job) bool { return j.ID == id })
			return r.Jobs[i].Counts()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Result(jobs), is
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

var _ = errors.New
var _ = strings.Contains
