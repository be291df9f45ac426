package recording_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/live/recording"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// free returns the devices of a node that are not held.
func free(c *livetest.Cluster, n *live.Node) int {
	left := n.Type.Devices - n.UsedDevices
	for _, j := range c.Jobs() {
		left -= j.Slots[n.Name]
	}
	return left
}

// share lets others use a cluster beside pacer: they take devices that are free, and give them back; users cancel a job that
// runs and one that waits; a node without jobs leaves for a while.
type share struct {
	next             time.Duration
	took             int // device takes
	used             map[string]int
	running, waiting []spec.JobID // cancelled
	absent           string
	left, back       time.Duration
}

func (s *share) step(r *run) bool {
	if r.at() < s.next {
		return false
	}
	s.next = r.at() + 90*time.Second
	for _, n := range r.tr.Nodes() {
		switch {
		case n.Name == s.absent:
			if r.at() > s.left+10*time.Minute && s.back == 0 {
				s.back = r.at()
				r.c.AddNode(n)
			}
			continue
		case s.used[n.Name] > 0:
			delete(s.used, n.Name)
			r.c.SetNode(n.Name, func(n *live.Node) { n.UsedDevices = 0 })
			continue
		}
		if idle := free(r.c, &n); idle == 4 && s.absent == "" && r.at() > 5*time.Minute {
			s.absent, s.left = n.Name, r.at()
			r.c.RemoveNode(n.Name)
		} else if idle > 0 && idle < 4 {
			s.used[n.Name] = idle
			s.took++
			r.c.SetNode(n.Name, func(n *live.Node) { n.UsedDevices = idle })
		}
	}
	for _, j := range r.c.Jobs() {
		switch {
		case j.Phase == live.Running && len(s.running) < 3 && r.at() > time.Duration(1+len(s.running))*6*time.Minute:
			s.running = append(s.running, j.Spec.ID)
			r.c.Delete(j.Spec.ID)
		case j.Phase == live.Held && j.Record.FirstRun.IsZero() && len(s.waiting) < 2 && r.at() > time.Duration(1+len(s.waiting))*8*time.Minute:
			s.waiting = append(s.waiting, j.Spec.ID)
			r.c.Delete(j.Spec.ID)
		}
	}
	return false
}

// TestSharedCluster: others use the cluster, too, users cancel jobs, and a node leaves for a while: every job starts and ends in
// the replay as it did. Without what others did it does not.
func TestSharedCluster(t *testing.T) {
	for _, policy := range []string{"fifo", "srtf", "gavel-las", "optimus", "rubick"} {
		t.Run(policy, func(t *testing.T) {
			tr, s := livetest.NewTrace(60, 3), &share{used: map[string]int{}}
			r := read(t, recorded(t, tr, policy, s.step))
			if s.took < 4 || len(s.running) != 3 || len(s.waiting) != 2 || s.back == 0 || len(r.Failures) != 1 {
				t.Fatalf("%+v, failures %v", s, r.Failures)
			}
			cancelled := r.Cancellations()
			for _, id := range slices.Concat(s.running, s.waiting) {
				if _, ok := cancelled[id]; !ok || len(cancelled) != 5 {
					t.Fatalf("cancelled %v, want %v and %v", cancelled, s.running, s.waiting)
				}
			}
			if notes := strings.Join(r.Notes(), "; "); !strings.Contains(notes, "5 jobs cancelled: replayed until then, but not counted; jobs that pacer does not schedule held devices for") {
				t.Errorf("notes %q", notes)
			}
			was, is := replay(t, tr, r, policy)
			if diff := differing(t, was, is); len(diff) > 0 {
				t.Errorf("%d jobs differ:\n%s", len(diff), strings.Join(diff, "\n"))
			}
			alone := *r
			alone.Usage, alone.Failures = nil, sim.OutageTable{}
			if was, is = replay(t, tr, &alone, policy); len(differing(t, was, is)) == 0 {
				t.Error("equal without what others did")
			}
		})
	}
}

// TestSameName: a job that has the ID of one that was deleted is another one, whether its end was observed or not.
func TestSameName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	w := newWriter(t, path, recording.Session{})
	kind := spec.NodeGroup{Devices: 2, Accelerator: spec.Accelerator{Name: "x"}}
	nodes, slots := []live.Node{{Name: "n1", Type: kind}}, live.Slots{"n1": 2}
	at := livetest.Epoch
	for i := range 3 {
		j := live.Job{Spec: spec.Job{ID: "j", Model: spec.Model{Name: "a"}, Devices: 2, Steps: float64(i + 1)}, UID: fmt.Sprint(i), Submitted: at,
			Phase: live.Running, Slots: slots, Started: at, Record: live.Record{Generation: 1, Plan: "dp=2", Slots: slots, RunGeneration: 1, RunPlan: "dp=2", RunSlots: slots}}
		w.Observe(at.Add(time.Second), &live.State{Nodes: nodes, Jobs: []live.Job{j}})
		at = at.Add(time.Minute)
		if i == 0 {
			w.Observe(at, &live.State{Nodes: nodes, Cancelled: []spec.JobID{"j"}})
			at = at.Add(time.Minute)
		}
	}
	if err := w.Close(at); err != nil {
		t.Fatal(err)
	}
	r := read(t, path)
	var got []string
	for i := range r.Jobs {
		j := &r.Jobs[i]
		got = append(got, fmt.Sprintf("%s of %g steps from %v to %v, ended %v, cancelled %v", j.ID, j.Steps, j.Runs[0].Start, j.Runs[0].End, j.Ended, j.Cancelled >= 0))
	}
	want := []string{
		"j#1 of 1 steps from 1s to 1m0s, ended true, cancelled true", "j#2 of 2 steps from 2m0s to 3m1s, ended true, cancelled false",
		"j of 3 steps from 3m0s to 4m0s, ended false, cancelled false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("jobs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
