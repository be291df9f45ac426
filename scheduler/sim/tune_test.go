package sim_test

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
	"github.com/pacer-ml/pacer/scheduler/compat/sia"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// faster is a truth under which jobs make 1 step/s in their first round on a
// device and one more in each round after it.
type faster struct {
	ramp
	rounds map[spec.JobID]int
	calls  *[]string
	err    error
}

func (f faster) Tune(_ context.Context, now, until time.Duration, j *scheduler.JobState, _ *spec.NodeGroup) ([]sim.Stage, error) {
	*f.calls = append(*f.calls, fmt.Sprintf("%s %v-%v at %g", j.Job.ID, now, until, j.Done))
	f.rounds[j.Job.ID]++
	if f.rounds[j.Job.ID] == 4 {
		return nil, f.err // as it does
	}
	return []sim.Stage{{Rate: float64(f.rounds[j.Job.ID])}}, nil
}

// With a start cost of 5 s, a job of 40 steps makes 5, 20 and 15 steps in its rounds, the last
// in 5 s. A job of 130 steps makes 5, 20, 30, another 30 in a round without a change, and
// the last 45 at 5 steps/s.
func TestTune(t *testing.T) {
	var calls []string
	p := script{{grants: map[spec.JobID]string{"a": "0:1", "b": "0:1"}}}
	cfg := config(p, job("b", 0, 1, 130), job("a", 0, 1, 40))
	cfg.Truth, cfg.Round = faster{rounds: map[spec.JobID]int{}, calls: &calls}, 10*s
	cfg.Costs = sim.PerStart(func(spec.Job) time.Duration { return 5 * s })
	r := mustRun(t, cfg)
	if a, b := r.Jobs[0].End, r.Jobs[1].End; a != 25*s || b != 49*s {
		t.Errorf("a ends at %v, b at %v, want 25s and 49s", a, b)
	}
	want := []string{"a 0s-10s at 0", "b 0s-10s at 0", "a 10s-20s at 5", "b 10s-20s at 5", "a 20s-30s at 25", "b 20s-30s at 25", "b 30s-40s at 55", "b 40s-50s at 85"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}

	cfg.Round = 0
	if _, err := sim.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "round") {
		t.Errorf("without rounds: %v", err)
	}
	cfg.Round = 10 * s
	gone := errors.New("gone")
	cfg.Truth = faster{rounds: map[spec.JobID]int{}, calls: &calls, err: gone}
	if _, err := sim.Run(t.Context(), cfg); !errors.Is(err, gone) {
		t.Errorf("an error of the truth: %v", err)
	}
}

// once is an outage of node 0.
type once sim.Outage

func (o once) Outages(node int) func() (sim.Outage, bool) {
	told := node > 0
	return func() (sim.Outage, bool) {
		first := !told
		told = true
		return sim.Outage(o), first
	}
}

// A checkpoint is due after 4 s of training, whatever the speed: at 12 s there are
// 10 + 2*2 steps to save, from which the job goes on after the node was down.
func TestTuneKeepsCheckpoints(t *testing.T) {
	var calls []string
	cfg := config(script{{grants: map[spec.JobID]string{"b": "0:1"}}}, job("b", 0, 1, 40))
	cfg.Truth, cfg.Round, cfg.Costs = faster{rounds: map[spec.JobID]int{}, calls: &calls}, 10*s, nil
	cfg.CheckpointEvery, cfg.Failures = 4*s, once{Down: 15 * s, Up: 16 * s}
	mustRun(t, cfg)
	if want := "b 20s-30s at 14"; len(calls) < 3 || calls[2] != want {
		t.Errorf("calls %q, want %q in the third place", calls, want)
	}
}

// With free-moves a job that keeps its shape continues on another node, and pays only
// for another type.
func TestFreeMoves(t *testing.T) {
	p := script{{grants: map[spec.JobID]string{"a": "0:1"}, wake: 7 * s}, {at: 7 * s, grants: map[spec.JobID]string{"a": "1:1"}}}
	for _, c := range []struct {
		rule     func(*sim.Rules)
		end      time.Duration
		restarts int
	}{
		{func(*sim.Rules) {}, 20 * s, 1},
		{sia.FreeMoves, 15 * s, 0},
	} {
		cfg := config(p, job("a", 0, 1, 10))
		c.rule(&cfg.Rules)
		cfg.Costs = sim.PerStart(func(spec.Job) time.Duration { return 5 * s })
		var moved int
		cfg.Observe = func(e sim.Event) {
			if e.Kind == sim.Moved {
				moved = e.Grant.Slots[0].Node
			}
		}
		r := mustRun(t, cfg)
		if got := r.Jobs[0]; got.End != c.end || got.Restarts != c.restarts || moved != 1 {
			t.Errorf("ends at %v after %d restarts on node %d, want %v, %d and 1", got.End, got.Restarts, moved, c.end, c.restarts)
		}
	}
}
