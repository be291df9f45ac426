package slurm_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
)

// TestControllerRestart: while slurmctld restarts and does not know its nodes yet, no node counts as lost, and a job that runs
// keeps its devices.
func TestControllerRestart(t *testing.T) {
	real := slurmtest.Start(t, 2, 0)
	c, err := slurm.New(t.Context(), options())
	if err != nil {
		t.Fatal(err)
	}
	id := real.Submit(fmt.Sprintf(sleeper, "600"), "-n1", "-N1", "--gres=gpu:1", "--comment=pacer:model=m,batch=1,steps=100000")
	real.Run("scontrol", "release", id)
	await(t, c, id, func(j *live.Job) bool { return j.Phase == live.Running })
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		real.RestartController(0)
	}()
	seen := map[live.Mode]int{}
	for after := 0; after < 60; time.Sleep(20 * time.Millisecond) {
		select {
		case <-restarted:
			after++
		default:
		}
		s, err := c.Observe(t.Context())
		if err != nil {
			continue
		}
		for _, n := range s.Nodes {
			if seen[n.Mode]++; n.Mode == live.Down {
				t.Errorf("node %s is %s", n.Name, n.Mode)
			}
		}
		if len(s.Nodes) != 2 || len(s.Jobs) != 1 || s.Jobs[0].Phase != live.Running || s.Jobs[0].Slots.Devices() != 1 {
			t.Errorf("%d nodes, jobs %+v", len(s.Nodes), s.Jobs)
		}
	}
	t.Logf("modes of nodes seen: %v", seen)
}
