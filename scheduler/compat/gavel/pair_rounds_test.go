package gavel

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/gavel"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// poorOnY halves what jobs keep beside others on y.
type poorOnY struct{ *schedulertest.Oracle }

func (o poorOnY) Beside(a, b spec.Config) (float64, error) {
	rate, err := o.Oracle.Beside(a, b)
	if a.Accelerator.Name == "y" {
		rate /= 2
	}
	return rate, err
}

// Two that keep 0.8 of their speeds each on x, 0.4 on y, and run nowhere else part
// when they ran on y, unless both types are summed; two that cannot run together
// always part.
func TestGandivaParts(t *testing.T) {
	w := &schedulertest.World{}
	cluster := spec.Cluster{}
	for _, acc := range []string{"x", "y"} {
		cluster.Groups = append(cluster.Groups, spec.NodeGroup{Count: 1, Devices: 1, Accelerator: spec.Accelerator{Name: acc}})
		for _, m := range []string{"a", "b", "c"} {
			w.Add(m, acc, schedulertest.OnePlan(1), spec.NewShape(1), 2)
		}
	}
	w.Pair("a", "b", 0.8, 0.8)
	for _, summed := range []bool{false, true} {
		var rules gavel.Variant
		TypeByType(&rules, &Rounds{})
		if summed {
			SummedGain(&rules)
		}
		made, err := gavel.Gandiva.New(policy.Deps{Oracle: poorOnY{w.Oracle(0, 1)}, Variants: policy.Variants{&rules}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			a, b string
			on   int // group, -1 = none
			part bool
		}{{"a", "b", 0, false}, {"a", "b", 1, !summed}, {"a", "b", -1, false}, {"a", "c", -1, true}} {
			p := made.(*pairRounds)
			clear(p.Partner)
			p.Partner["0"], p.Partner["1"], p.units = "1", "0", nil
			var states []*scheduler.JobState
			for i, m := range []string{c.a, c.b} {
				j := &spec.Job{ID: spec.JobID([]string{"0", "1"}[i]), Model: spec.Model{Name: m}, Plan: schedulertest.OnePlan(1), Devices: 1}
				states = append(states, &scheduler.JobState{Job: j, Order: i})
			}
			s := scheduler.NewSnapshot(0, cluster, states)
			p.jobs = map[spec.JobID]*scheduler.JobState{"0": states[0], "1": states[1]}
			for _, j := range states {
				if _, err := p.Candidates(t.Context(), cluster, j.Job); err != nil {
					t.Fatal(err)
				}
			}
			u := newUnit(states[0], 2)
			u.b, u.on = states[1], c.on
			p.units = []*unit{u}
			if err := p.draw(s); err != nil {
				t.Fatal(err)
			}
			if parted := len(p.Partner) == 0; parted != c.part {
				t.Errorf("%s and %s on group %d, summed %v: parted is %v, want %v", c.a, c.b, c.on, summed, parted, c.part)
			}
		}
	}
}
