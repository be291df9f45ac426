package fgd

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// Of typical jobs half request 1 and half 4 of the 4 devices of a node, an eighth of the node's
// CPUs for each. A node is of no use to the latter unless all of it is free, and to none without
// CPUs.
func TestFragments(t *testing.T) {
	st := &state{typical: []typical{{request{1, spec.Host{MilliCPUs: 1000}}, 0.5}, {request{4, spec.Host{MilliCPUs: 1000}}, 0.5}}}
	for _, c := range []struct {
		free, cpus int
		want       float64
	}{{4, 8, 0}, {3, 8, 1.5}, {1, 8, 0.5}, {4, 3, 2}, {4, 0, 4}, {0, 8, 0}} {
		if got := st.fragments(4, c.free, spec.Host{MilliCPUs: int64(1000 * c.cpus), Bytes: spec.Unlimited}); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d free devices, %d CPUs: %g, want %g", c.free, c.cpus, got, c.want)
		}
	}
}

// Most jobs request 2 devices. One for 1 device goes to the node with 3 free devices, which then
// has room for 2, and not to the one with 2, as best fit does.
func TestUnlikeBestFit(t *testing.T) {
	p, err := Info.New(policy.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	job := func(id string, order, devices int, slots ...scheduler.Slot) *scheduler.JobState {
		j := &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(id), Devices: devices}, Order: order, Remaining: 1}
		if slots != nil {
			j.Grant = &scheduler.Grant{Job: j.Job.ID, Plan: spec.Plan{DP: devices}.Normal(), Shape: spec.NewShape(devices), Slots: slots}
		}
		return j
	}
	jobs := []*scheduler.JobState{job("a", 0, 2, scheduler.Slot{Node: 0, Devices: 2}), job("b", 1, 1, scheduler.Slot{Node: 1, Devices: 1}), job("c", 2, 1)}
	for range 8 {
		p.(*fgd).counts[request{devices: 2}]++
		p.(*fgd).jobs++
	}
	d, err := p.Decide(t.Context(), scheduler.NewSnapshot(0, schedulertest.Nodes(2, 4), jobs))
	if err != nil || len(d.Grants) != 1 || d.Grants[0].Slots[0] != (scheduler.Slot{Node: 1, Devices: 1}) {
		t.Errorf("%+v %v", d.Grants, err)
	}
}
