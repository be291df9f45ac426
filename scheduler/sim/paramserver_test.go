package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// psJob is a job of 2 CPUs for each replica, on a device or without one, and 3 for
// each parameter server.
func psJob(id spec.JobID, devices int, steps float64) spec.Job {
	return spec.Job{
		ID: id, Model: spec.Model{Name: "m"}, Plan: spec.Plan{DP: 1, ParamServers: 1}.Normal(), Devices: devices,
		Host: spec.Host{MilliCPUs: 2000}, ServerHost: spec.Host{MilliCPUs: 3000}, Steps: steps,
	}
}

// psGrant is a grant of slots with the host resources of such a job.
func psGrant(j spec.Job, slots ...scheduler.Slot) *scheduler.Grant {
	g := &scheduler.Grant{Job: j.ID, Slots: slots}
	var counts []int
	for i := range slots {
		s := &slots[i]
		s.Host = j.HostFor(s.Devices+s.Workers, s.Servers)
		counts = append(counts, s.Devices)
	}
	g.Shape = spec.NewShape(counts...)
	g.Plan = spec.Plan{DP: g.Devices() + g.Workers(), ParamServers: g.Servers()}.Normal()
	return g
}

// tasks is a truth with a step per second for each replica and each server.
type tasks struct{ sim.Durations }

func (tasks) StepsPerSec(_ context.Context, _ *spec.Job, g *scheduler.Grant, _ *spec.NodeGroup) (float64, error) {
	return float64(g.Plan.DP + g.Plan.ParamServers), nil
}

// psConfig are two nodes of 2 devices and 8 CPUs.
func psConfig(p scheduler.Policy, jobs ...spec.Job) sim.Config {
	c := config(p, jobs...)
	c.Cluster.Groups[0].Devices, c.Cluster.Groups[0].CPUs = 2, 8
	c.Truth, c.Audit = tasks{}, true
	return c
}

// TestParamServer runs a job on devices beside one on CPUs alone, both with parameter
// servers, recounts, and takes a server's node down.
func TestParamServer(t *testing.T) {
	gpu, cpu := psJob("gpu", 1, 100), psJob("cpu", 0, 60)
	p := policyFunc(func(s *scheduler.Snapshot) (d scheduler.Decision) {
		for _, j := range s.Jobs() {
			switch {
			case j.Job.ID == "gpu":
				d.Grants = append(d.Grants, psGrant(gpu, scheduler.Slot{Node: 0, Devices: 2, Servers: 1}))
			case len(s.Down) == 0:
				d.Grants = append(d.Grants, psGrant(cpu, scheduler.Slot{Node: 1, Workers: 2, Servers: 1}))
			}
		}
		return d
	})
	c := psConfig(p, gpu, cpu)
	c.Failures = sim.OutageTable{1: {{Down: 10 * s, Up: 20 * s}}}
	recount := &schedulertest.Recount{
		Cluster: c.Cluster, Jobs: c.Jobs, Costs: func(*spec.Job) sim.ModelCosts { return sim.ModelCosts{} },
		Rate: func(_ *spec.Job, g *scheduler.Grant) float64 { return float64(g.Plan.DP + g.Plan.ParamServers) },
	}
	c.Observe, c.Costs = recount.Observe, nil
	r := mustRun(t, c)
	if err := recount.Check(r); err != nil {
		t.Error(err)
	}
	want := map[spec.JobID]string{"gpu": "33.333333333s after 66.7 device-s, 0 failures", "cpu": "40s after 60.0 device-s, 1 failures"}
	for _, j := range r.Jobs {
		if got := fmt.Sprintf("%v after %.1f device-s, %d failures", j.End, j.Attained, j.Failures); got != want[j.Job.ID] {
			t.Errorf("job %s ends at %s, want %s", j.Job.ID, got, want[j.Job.ID])
		}
	}
	if most := r.Usage[0].Held; most != 2 {
		t.Errorf("%d devices held, want the 2 of job gpu", most)
	}
}

// TestParamServerGrants checks that invalid grants of jobs with parameter servers end the run.
func TestParamServerGrants(t *testing.T) {
	gpu, cpu := psJob("j", 1, 100), psJob("j", 0, 100)
	few := psGrant(gpu, scheduler.Slot{Devices: 1, Servers: 1})
	few.Slots[0].Host.MilliCPUs--
	plan := psGrant(gpu, scheduler.Slot{Devices: 1, Servers: 1})
	plan.Plan.ParamServers = 2
	for _, c := range []struct {
		job  spec.Job
		g    *scheduler.Grant
		want string
	}{
		{gpu, psGrant(gpu, scheduler.Slot{Node: 0, Devices: 1}, scheduler.Slot{Node: 1, Servers: 2}), ""},
		{cpu, psGrant(cpu, scheduler.Slot{Node: 0, Workers: 4}, scheduler.Slot{Node: 1, Servers: 2}), ""},
		{gpu, few, "4.999 CPUs and 0 bytes of the host of node 0 for 1 device, 1 parameter server, it needs 5 CPUs"},
		{gpu, plan, "has 2 parameter servers, 1 are granted"},
		{gpu, psGrant(gpu, scheduler.Slot{Devices: 1, Workers: 1, Servers: 1}), "1 worker on CPUs granted, its replicas run on devices"},
		{cpu, psGrant(cpu, scheduler.Slot{Devices: 1, Servers: 1}), "1 device granted, its replicas run on CPUs alone"},
		{gpu, psGrant(gpu, scheduler.Slot{Devices: 1, Servers: -1}), "1 device, -1 parameter servers of node 0"},
		{gpu, psGrant(gpu, scheduler.Slot{Devices: 2, Servers: 2}), "node 0 has 8 CPUs and any bytes of its host left, 10 CPUs"},
	} {
		p := policyFunc(func(s *scheduler.Snapshot) (d scheduler.Decision) {
			if len(s.Jobs()) > 0 {
				d.Grants = []*scheduler.Grant{c.g}
			}
			return d
		})
		switch _, err := sim.Run(t.Context(), psConfig(p, c.job)); {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.g.Slots, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: error %v, want one that says %q", c.g.Slots, err, c.want)
		}
	}
}

// Jobs are rejected if no replica and server fit, or if they contradict themselves.
func TestParamServerRejects(t *testing.T) {
	large := psJob("large", 1, 100)
	large.ServerHost.MilliCPUs = 9000
	bare := psJob("bare", 1, 100)
	bare.Plan.ParamServers = 0
	idle := psJob("idle", 0, 100)
	idle.Host = spec.Host{}
	split := psJob("split", 1, 100)
	split.Plan.TP = 2
	want := map[spec.JobID]string{
		"large": "one replica with 2 CPUs and 0 bytes and one parameter server with 9 CPUs and 0 bytes fit on no nodes of the cluster",
		"bare":  "3 CPUs and 0 bytes requested for each parameter server, but plan", "idle": "replicas run on CPUs, but the job requests none for them",
		"split": "needs tp, pp, cp and ep of 1",
	}
	p := policyFunc(func(*scheduler.Snapshot) (d scheduler.Decision) { return d })
	for _, j := range mustRun(t, psConfig(p, large, bare, idle, split)).Jobs {
		if !strings.Contains(j.Rejected, want[j.Job.ID]) || j.Rejected == "" {
			t.Errorf("job %s: rejected %q, want %q", j.Job.ID, j.Rejected, want[j.Job.ID])
		}
	}
}
