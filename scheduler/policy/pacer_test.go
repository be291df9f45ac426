package policy

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// full is a placer that finds no room.
type full struct{ scheduler.Placer }

func (full) Place(*scheduler.Inventory, int, spec.Shape) ([]scheduler.Slot, bool) { return nil, false }

// Who is to make way for a job does so, unless no place is found for that.
func TestPacerStopsNobodyInVain(t *testing.T) {
	packed, err := place.Lookup("packed")
	if err != nil {
		t.Fatal(err)
	}
	c := schedulertest.Nodes(1, 1)
	accelerator := c.Groups[0].Accelerator.Name
	w := &schedulertest.World{}
	w.Add("m", accelerator, schedulertest.OnePlan(1), spec.NewShape(1), 1)
	job := func(id spec.JobID, steps float64) *scheduler.JobState {
		return &scheduler.JobState{Job: &spec.Job{ID: id, Model: spec.Model{Name: "m"}, Plan: schedulertest.OnePlan(1), Devices: 1, Steps: steps}, Remaining: steps}
	}
	for _, v := range []struct {
		name   string
		placer scheduler.Placer
		want   spec.JobID
	}{{"room", packed, "short"}, {"none", full{packed}, "long"}} {
		long, short := job("long", 5000), job("short", 10)
		long.Phase = scheduler.Running
		long.Grant = &scheduler.Grant{Job: "long", Plan: long.Job.Plan, Shape: spec.NewShape(1), Slots: []scheduler.Slot{{Node: 0, Devices: 1}}}
		p := makeOne(t, "pacer", Deps{Oracle: w.Oracle(0, 0), Placer: v.placer})
		d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, c, []*scheduler.JobState{long, short}))
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Grants) != 1 || d.Grants[0].Job != v.want {
			t.Errorf("%s for a job of 10 s beside one of 5000 s that runs: grants %+v, want one of %s", v.name, d.Grants, v.want)
		}
	}
}
