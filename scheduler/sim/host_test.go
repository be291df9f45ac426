package sim_test

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// starved are two nodes of 4 devices with CPUs and memory for fewer if a job needs many.
func starved(p scheduler.Policy, jobs ...spec.Job) sim.Config {
	c := config(p, jobs...)
	c.Cluster.Groups[0].CPUs, c.Cluster.Groups[0].HostBytes = 6, 100
	c.Audit = true
	return c
}

func needy(j spec.Job, cpus float64, bytes int64) spec.Job {
	j.Host = spec.Host{MilliCPUs: int64(1000 * cpus), Bytes: bytes}
	return j
}

// hosted is a grant with the host resources that a job needs.
func hosted(g *scheduler.Grant, j spec.Job) *scheduler.Grant {
	for i := range g.Slots {
		g.Slots[i].Host = j.Host.Times(g.Slots[i].Devices)
	}
	return g
}

// with returns a grant with a number of CPUs in its shape.
func with(g *scheduler.Grant, cpus int) *scheduler.Grant {
	g.Shape.CPUs = cpus
	return g
}

// Grants that take more CPUs or memory than a node has left, or less than the job
// needs or runs with, stop the run.
func TestHostOverGranted(t *testing.T) {
	a, b := needy(job("a", 0, 2, 100), 2, 0), needy(job("b", 0, 2, 100), 2, 0)
	fat := needy(job("b", 0, 2, 100), 0, 51)
	for _, c := range []struct {
		name string
		b    spec.Job
		a, g *scheduler.Grant
		want string
	}{
		{"CPUs", b, hosted(grant("a", "0:2"), a), hosted(grant("b", "0:2"), b), "job b: node 0 has 2 CPUs and 100 bytes of its host left, 4 CPUs and 0 bytes are granted"},
		{"memory", fat, hosted(grant("a", "0:2"), a), hosted(grant("b", "0:2"), fat), "job b: node 0 has 2 CPUs and 100 bytes of its host left, 0 CPUs and 102 bytes are granted"},
		{"nothing of the host", b, hosted(grant("a", "0:2"), a), grant("b", "1:2"), "job b: 0 CPUs and 0 bytes of the host of node 1 for 2 devices, it needs 4 CPUs and 0 bytes"},
		{"more than it needs", b, hosted(grant("a", "0:2"), a), hosted(grant("b", "1:2"), needy(b, 3, 7)), ""},
		{"more than there is", b, hosted(grant("a", "0:2"), a), hosted(grant("b", "1:2"), needy(b, 4, 0)), "job b: node 1 has 6 CPUs and 100 bytes of its host left, 8 CPUs and 0 bytes are granted"},
		{"what its shape says", b, hosted(grant("a", "0:2"), a), with(hosted(grant("b", "1:2"), needy(b, 3, 0)), 6), ""},
		{"less than its shape says", b, hosted(grant("a", "0:2"), a), with(hosted(grant("b", "1:2"), b), 5), "job b: the shape needs 5 CPUs and 0 bytes, the slots have 4 CPUs and 0 bytes of hosts"},
		{"all is there", b, hosted(grant("a", "0:2"), a), hosted(grant("b", "0:1+1:1"), b), ""},
	} {
		p := policyFunc(func(s *scheduler.Snapshot) (d scheduler.Decision) {
			for _, j := range s.Jobs() {
				d.Grants = append(d.Grants, map[spec.JobID]*scheduler.Grant{"a": c.a, "b": c.g}[j.Job.ID])
			}
			return d
		})
		switch _, err := sim.Run(t.Context(), starved(p, a, c.b)); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.want)
		}
	}
}

// Jobs are rejected if no group has enough CPUs or memory. Other jobs run, on as many nodes
// as they need.
func TestHostRejects(t *testing.T) {
	p, err := builtin.Policies.New(policy.Spec{Name: "fifo"}, policy.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[spec.JobID]string{
		"spread": "", "cpus": "asks for 5 devices with 3 CPUs and 0 bytes each, the cluster has CPUs and memory for 4 of one type",
		"bytes": "asks for 1 device with 0 CPUs and 101 bytes each, the cluster has CPUs and memory for 0 of one type", "less": "-1 CPUs",
	}
	r := mustRun(t, starved(p, needy(job("spread", 0, 4, 40), 3, 0), needy(job("cpus", 0, 5, 1), 3, 0),
		needy(job("bytes", 0, 1, 1), 0, 101), needy(job("less", 0, 1, 1), -1, 0)))
	for _, j := range r.Jobs {
		if why := want[j.Job.ID]; !strings.Contains(j.Rejected, why) || (why == "") != j.Finished {
			t.Errorf("job %s: finished %v, rejected %q, want %q", j.Job.ID, j.Finished, j.Rejected, why)
		}
	}
}

// With any placement jobs share nodes only within their CPUs, and jobs that end or fail
// return them.
func TestHostPlaced(t *testing.T) {
	for _, info := range place.All() {
		placer, err := place.Lookup(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := builtin.Policies.New(policy.Spec{Name: "fifo-backfill"}, policy.Deps{Placer: placer})
		if err != nil {
			t.Fatal(err)
		}
		// Each needs all CPUs of a node for one device, or for two: two run at a time, the plain one beside them.
		c := starved(p, needy(job("a", 0, 1, 100), 6, 0), needy(job("b", 0, 2, 200), 3, 0), needy(job("c", 0, 1, 100), 5.5, 0), job("plain", 0, 2, 200))
		c.Failures = sim.OutageTable{1: {{Down: 200 * s, Up: 210 * s}}}
		r := mustRun(t, c)
		starts := map[spec.JobID]string{"a": "0s", "b": "0s", "c": "1m50s", "plain": "0s"}
		for _, j := range r.Jobs {
			if !j.Finished || j.Start.String() != starts[j.Job.ID] {
				t.Errorf("%s: job %s starts at %v, want %s; finished %v", info.Name, j.Job.ID, j.Start, starts[j.Job.ID], j.Finished)
			}
		}
	}
}
