package sia

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// A move is free with the same plan and shape only.
func TestFreeMoves(t *testing.T) {
	var r sim.Rules
	FreeMoves(&r)
	grant := func(dp, node int, perNode ...int) *scheduler.Grant {
		g := &scheduler.Grant{Job: "a", Plan: spec.Plan{DP: dp}.Normal(), Shape: spec.NewShape(perNode...)}
		for k, n := range perNode {
			g.Slots = append(g.Slots, scheduler.Slot{Node: node + k, Devices: n})
		}
		return g
	}
	for name, c := range map[string]struct {
		to   *scheduler.Grant
		want bool
	}{
		"other node":  {grant(4, 3, 4), true},
		"other shape": {grant(4, 3, 2, 2), false},
		"other plan":  {grant(2, 3, 4), false},
	} {
		if got := r.LiveMove(grant(4, 0, 4), c.to); got != c.want {
			t.Errorf("%s: free %v, want %v", name, got, c.want)
		}
	}
}
