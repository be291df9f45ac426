package live_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// faultRun drives a cluster in memory through faults.
type faultRun struct {
	*livetest.Trace
	t       *testing.T
	rng     *rand.Rand
	c       *livetest.Cluster
	policy  string
	faults  bool // other faults than kills
	kill    func(write int) bool
	stop    context.CancelFunc // kills the controller
	ctx     context.Context
	live    *live.Controller
	fresh   bool // the next observation is not stale
	deleted int
	kills   int
}

func newFaultRun(t *testing.T, policy string, seed uint64, jobs int) *faultRun {
	tr := livetest.NewTrace(jobs, seed)
	r := &faultRun{Trace: tr, t: t, rng: rand.New(rand.NewPCG(seed, 5)), policy: policy, kill: func(int) bool { return false }}
	r.c = livetest.New(livetest.Epoch, tr.Nodes()...)
	r.c.Violation = func(text string) {
		t.Errorf("policy %s, seed %d at %v: %s", policy, seed, r.c.Now().Sub(livetest.Epoch), text)
	}
	r.c.After = func(n int) error {
		if r.kill(n) {
			r.kills++
			r.stop()
		}
		if r.faults && r.rng.IntN(20) == 0 {
			return errors.New("no answer")
		}
		return nil
	}
	return r
}

// start starts another controller, which knows nothing.
func (r *faultRun) start() {
	r.ctx, r.stop = context.WithCancel(r.t.Context())
	r.fresh = true
	var err error
	r.live, err = live.New(live.Options{
		Cluster: r.c, StartCost: r.Cost, Epoch: livetest.Epoch, Now: r.c.Now, Writers: 1, Resync: 20 * time.Second, StaleAfter: 30 * time.Second,
		Policy: func(spec.Cluster) (scheduler.Policy, error) { return r.Trace.Policy(r.t, r.policy), nil },
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// run runs the trace until every job has ended.
func (r *faultRun) run() {
	r.start()
	next, wake := 0, livetest.Epoch
	for steps := 0; next < len(r.Jobs) || len(r.c.Jobs()) > 0; steps++ {
		if steps > 40*len(r.Jobs)+4000 {
			r.t.Errorf("policy %s, seed %d: %d jobs do not end, such as %+v", r.policy, r.Seed, len(r.c.Jobs()), r.c.Jobs()[0])
			return
		}
		at := wake
		if end, ok := r.c.NextEnd(); ok && end.Before(at) {
			at = end
		}
		if next < len(r.Jobs) {
			if arrival := livetest.Epoch.Add(r.Jobs[next].Submit); arrival.Before(at) {
				at = arrival
			}
		}
		r.c.Advance(at)
		for ; next < len(r.Jobs) && !livetest.Epoch.Add(r.Jobs[next].Submit).After(at); next++ {
			r.c.Submit(r.Jobs[next], r.Cost, r.Jobs[next].Steps, r.Rate(&r.Jobs[next]))
		}
		if r.faults {
			r.fault()
		}
		for before := -1; before != r.c.Writes(); {
			before = r.c.Writes()
			var err error
			if wake, err = r.live.Tick(r.ctx); err != nil {
				r.t.Fatal(err)
			}
			if !wake.After(at) {
				wake = at.Add(time.Second)
			}
			if r.ctx.Err() != nil {
				r.start()
				before = -1
			}
		}
	}
}

// fault changes something that controllers do not do.
func (r *faultRun) fault() {
	nodes := r.Nodes()
	node := nodes[r.rng.IntN(len(nodes))].Name
	jobs := r.c.Jobs()
	switch r.rng.IntN(12) {
	case 0:
		r.c.SetNode(node, func(n *live.Node) { n.Mode = live.Down })
	case 1:
		r.c.SetNode(node, func(n *live.Node) { n.Mode = live.Draining })
	case 2:
		r.c.SetNode(node, func(n *live.Node) { n.UsedDevices = r.rng.IntN(2) })
	case 3, 4, 5: // most nodes are up
		for _, n := range nodes {
			r.c.SetNode(n.Name, func(n *live.Node) { n.Mode, n.UsedDevices = live.Up, 0 })
		}
	case 6:
		if len(jobs) > 0 && r.rng.IntN(8) == 0 {
			r.deleted++
			r.c.Delete(jobs[r.rng.IntN(len(jobs))].Spec.ID)
		}
	case 7, 8:
		if len(jobs) > 0 {
			r.c.Edit(jobs[r.rng.IntN(len(jobs))].Spec.ID, func(j *live.Job) { j.Paused = !j.Paused && r.rng.IntN(3) == 0 })
		}
	case 9:
		for _, j := range jobs {
			r.c.Edit(j.Spec.ID, func(j *live.Job) { j.Paused = false })
		}
	}
}

// TestKills kills the controller after every write, and after random ones. The next one knows
// only what the cluster says. A policy that depends on nothing else, and never takes devices
// away, then makes the writes of an uninterrupted run, no more and no fewer. Another one may
// decide otherwise after half a decision was recorded; then every job ends all the same, and
// none is stopped that runs with its target.
func TestKills(t *testing.T) {
	for _, policy := range append(livetest.Conforming[:6:6], "fifo-backfill") { // pacer searches for too long at each start
		t.Run(policy, func(t *testing.T) {
			for seed := range uint64(3) {
				whole := newFaultRun(t, policy, seed, 20)
				whole.run()
				every := newFaultRun(t, policy, seed, 20)
				every.kill = func(int) bool { return true }
				every.run()
				some := newFaultRun(t, policy, seed, 20)
				some.kill = func(int) bool { return some.rng.IntN(4) == 0 }
				some.run()
				if every.kills != every.c.Writes() || some.kills == 0 {
					t.Errorf("seed %d: %d and %d kills, %d writes", seed, every.kills, some.kills, every.c.Writes())
				}
				w, e, s := whole.c.Writes(), every.c.Writes(), some.c.Writes()
				if plain := policy == "fifo" || policy == "fifo-backfill"; plain && (e != w || s != w) {
					t.Errorf("seed %d: %d writes, %d with a kill after each, %d with some kills", seed, w, e, s)
				}
			}
		})
	}
}

// TestFaults drives every policy through random faults: kills, writes that fail or take place
// without an answer, conflicts, stale observations, slow starts and stops, nodes that are lost,
// drained or used by others, jobs that are paused and deleted. No device is granted twice, no
// job that runs with its target is stopped, and every job ends. PACER_LIVE_SEED runs one seed,
// PACER_SOAK many.
func TestFaults(t *testing.T) {
	kills, deleted, lost := 0, 0, 0
	seeds := livetest.Seeds(t, 36, 1000)
	for _, seed := range seeds {
		if t.Failed() {
			break
		}
		r := newFaultRun(t, livetest.Conforming[seed%uint64(len(livetest.Conforming))], seed, 12)
		r.faults, r.c.Slow = true, r.rng.IntN(2) == 0
		r.kill = func(int) bool { return r.rng.IntN(15) == 0 }
		r.c.Before = func(n int) error {
			switch r.rng.IntN(25) {
			case 0:
				return fmt.Errorf("write %d: %w", n, live.ErrConflict)
			case 1:
				return errors.New("too many requests")
			}
			return nil
		}
		r.c.Stale = func() int {
			if r.fresh {
				r.fresh = false
				return 0
			}
			return max(r.rng.IntN(12)-8, 0)
		}
		r.run()
		kills, deleted, lost = kills+r.kills, deleted+r.deleted, lost+r.c.Lost
	}
	t.Logf("%d kills, %d jobs deleted, %d runs lost", kills, deleted, lost)
	if len(seeds) > 1 && (kills == 0 || deleted == 0 || lost == 0) {
		t.Error("a kind of fault did not occur")
	}
}
