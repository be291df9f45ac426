package synergy

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/hostspeed"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// profiles are of two kinds of models: "image" is faster with CPUs, up to 9 per device, "text"
// needs one. The other models are unknown.
type profiles struct{}

func (profiles) Relative(j *spec.Job, _ int, each spec.Host) (float64, bool) {
	switch j.Model.Name {
	case "image":
		return min(float64(each.MilliCPUs)/1000, 9) / 3, true
	case "text":
		return 1, true
	}
	return 0, false
}

func fixture(t *testing.T, options map[string]string) scheduler.Policy {
	t.Helper()
	p, err := newSynergy(policy.Deps{HostSpeeds: profiles{}, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// job returns a job that takes an hour at its proportional share.
func job(id, model string, devices int) *scheduler.JobState {
	return &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(id), Model: spec.Model{Name: model}, Devices: devices, Duration: time.Hour}, Remaining: 3600, StartCost: time.Minute}
}

// servers returns nodes with 4 devices and 12 CPUs each.
func servers(n int) spec.Cluster {
	c := schedulertest.Nodes(n, 4)
	c.Groups[0].CPUs = 12
	return c
}

// decide returns the CPUs of each job, and its node, and makes the grants the present ones.
func decide(t *testing.T, p scheduler.Policy, now time.Duration, c spec.Cluster, jobs ...*scheduler.JobState) map[spec.JobID]string {
	t.Helper()
	for i, j := range jobs {
		j.Order = i
	}
	d, err := p.Decide(t.Context(), scheduler.NewSnapshot(now, c, jobs))
	if err != nil {
		t.Fatal(err)
	}
	out := map[spec.JobID]string{}
	grants := map[spec.JobID]*scheduler.Grant{}
	for _, g := range d.Grants {
		grants[g.Job] = g
		for _, s := range g.Slots {
			out[g.Job] += fmt.Sprintf("%d:%d/%d ", s.Node, s.Devices, s.Host.MilliCPUs/1000)
		}
	}
	for _, j := range jobs {
		if g := grants[j.Job.ID]; g != j.Grant {
			j.Grant, j.Ready = g, now+j.StartCost
		}
	}
	return out
}

func want(t *testing.T, what string, got map[spec.JobID]string, want map[spec.JobID]string) {
	t.Helper()
	for id, w := range want {
		if got[id] != w {
			t.Errorf("%s: job %s has %q, want %q; all: %v", what, id, got[id], w, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d jobs run, want %d: %v", what, len(got), len(want), got)
	}
}

// The image job has the 9 CPUs it can use, as each of the text jobs needs one of its 3.
func TestDemandsFit(t *testing.T) {
	got := decide(t, fixture(t, nil), 0, servers(1), job("t1", "text", 1), job("i", "image", 1), job("t2", "text", 1), job("t3", "text", 1))
	want(t, "tuned", got, map[spec.JobID]string{"i": "0:1/9 ", "t1": "0:1/1 ", "t2": "0:1/1 ", "t3": "0:1/1 "})
	got = decide(t, fixture(t, map[string]string{"tune": "false"}), 0, servers(1), job("i", "image", 1), job("t", "text", 1))
	want(t, "in proportion", got, map[spec.JobID]string{"i": "0:1/0 ", "t": "0:1/0 "})
}

// Of three image jobs the second gets its proportional share, 3 CPUs, as 9 are not left; for
// the third the first is cut to its own, and then has what the others leave.
func TestCut(t *testing.T) {
	p, a, b, c := fixture(t, nil), job("a", "image", 1), job("b", "image", 1), job("c", "image", 1)
	want(t, "two", decide(t, p, 0, servers(1), a, b), map[spec.JobID]string{"a": "0:1/9 ", "b": "0:1/3 "})
	want(t, "three", decide(t, p, time.Second, servers(1), a, b, c), map[spec.JobID]string{"a": "0:1/6 ", "b": "0:1/3 ", "c": "0:1/3 "})
	// b and c end: a has run for a round and gets 9 again, which saves it most of an hour.
	want(t, "one", decide(t, p, time.Hour, servers(1), a), map[spec.JobID]string{"a": "0:1/9 "})
}

// What is too little for a demand goes to the first job that profits: of 12 CPUs two text jobs
// need one each, two image jobs have 3, and 4 are left.
func TestSpare(t *testing.T) {
	got := decide(t, fixture(t, nil), 0, servers(1), job("a", "image", 1), job("b", "image", 1), job("t1", "text", 1), job("t2", "text", 1))
	want(t, "spare", got, map[spec.JobID]string{"a": "0:1/7 ", "b": "0:1/3 ", "t1": "0:1/1 ", "t2": "0:1/1 "})
}

// A running job is not restarted for CPUs that save it less than a start, nor within a round.
func TestRaiseOnlyIfWorth(t *testing.T) {
	for _, c := range []struct {
		remaining float64
		ran       time.Duration
		want      string
	}{{3600, 400 * time.Second, "0:1/9 "}, {80, 400 * time.Second, "0:1/3 "}, {3600, 100 * time.Second, "0:1/3 "}} {
		a := job("a", "image", 1)
		a.Done, a.Remaining = 3600-c.remaining, c.remaining
		a.Grant = &scheduler.Grant{Job: "a", Plan: spec.Plan{DP: 1}.Normal(), Shape: spec.NewShape(1), Slots: []scheduler.Slot{{Devices: 1, Host: spec.Host{MilliCPUs: 3000}}}}
		want(t, fmt.Sprint(c), decide(t, fixture(t, nil), c.ran, servers(1), a), map[spec.JobID]string{"a": c.want})
	}
}

// Jobs of unknown models have the proportional share. A job on two nodes has its demand on both.
func TestUnknownAndWide(t *testing.T) {
	got := decide(t, fixture(t, nil), 0, servers(3), job("u", "other", 2), job("w", "text", 8))
	want(t, "unknown", got, map[spec.JobID]string{"u": "2:2/6 ", "w": "0:4/4 1:4/4 "})
}

// Jobs after the first that fit wait, the shortest run, and those that have not run for a round
// are not preempted.
func TestOrder(t *testing.T) {
	p, long, short := fixture(t, nil), job("long", "text", 4), job("short", "text", 4)
	short.Job.Duration, short.Remaining = time.Minute, 60
	want(t, "shortest first", decide(t, p, 0, servers(1), long, short), map[spec.JobID]string{"short": "0:4/4 "})
	long.Grant, short.Grant = short.Grant, nil
	long.Ready = 0
	long.Grant = &scheduler.Grant{Job: "long", Plan: spec.Plan{DP: 4}.Normal(), Shape: spec.NewShape(4), Slots: []scheduler.Slot{{Devices: 4, Host: spec.Host{MilliCPUs: 4000}}}}
	want(t, "within a round", decide(t, p, time.Minute, servers(1), long, short), map[spec.JobID]string{"long": "0:4/4 "})
	want(t, "after a round", decide(t, p, time.Hour, servers(1), long, short), map[spec.JobID]string{"short": "0:4/4 "})
	if _, err := newSynergy(policy.Deps{Options: map[string]string{"order": "lifo"}}); err == nil {
		t.Error("order lifo is accepted")
	}
}

// Devices on two half-free nodes do not fit a job of 4 on one: the two jobs there are moved
// together once they have run for a round.
func TestPlacedAnew(t *testing.T) {
	w := &schedulertest.World{}
	for _, n := range []int{2, 4} {
		w.Add("text", "x", schedulertest.OnePlan(n), spec.NewShape(n), 1)
	}
	p, err := newSynergy(policy.Deps{HostSpeeds: profiles{}, Oracle: w.Oracle(0, 1), Options: map[string]string{"order": "fifo"}})
	if err != nil {
		t.Fatal(err)
	}
	var jobs []*scheduler.JobState
	for i := range 2 {
		j := job(fmt.Sprint(i), "text", 2)
		j.Job.GlobalBatch, j.Job.Plan = 1, schedulertest.OnePlan(2)
		j.Grant = &scheduler.Grant{Job: j.Job.ID, Plan: schedulertest.OnePlan(2), Shape: spec.NewShape(2), Slots: []scheduler.Slot{{Node: i, Devices: 2, Host: spec.Host{MilliCPUs: 2000}}}}
		jobs = append(jobs, j)
	}
	wide := job("wide", "text", 4)
	wide.Job.GlobalBatch, wide.Job.Plan = 1, schedulertest.OnePlan(4)
	jobs = append(jobs, wide)
	want(t, "within a round", decide(t, p, time.Minute, servers(2), jobs...), map[spec.JobID]string{"0": "0:2/2 ", "1": "1:2/2 "})
	want(t, "after a round", decide(t, p, time.Hour, servers(2), jobs...), map[spec.JobID]string{"wide": "0:4/4 ", "0": "1:2/2 ", "1": "1:2/2 "})
}

// Synergy conforms when speeds depend on hosts.
func TestConformance(t *testing.T) {
	schedulertest.Conformance(t, func(o scheduler.Oracle) (scheduler.Policy, error) {
		return newSynergy(policy.Deps{Oracle: o, HostSpeeds: byCPUs{}})
	})
}

// byCPUs makes model a faster with CPUs and b with memory.
type byCPUs struct{}

func (byCPUs) Relative(j *spec.Job, _ int, each spec.Host) (float64, bool) {
	switch j.Model.Name {
	case "a":
		return min(float64(each.MilliCPUs)/1000, 4) / 2, true
	case "b":
		return min(float64(each.Bytes)/(1<<29), 1), true
	}
	return 0, false
}

// sharedProfiles reads the profiles that Blox kept of Synergy.
func sharedProfiles(t *testing.T) *hostspeed.Table {
	t.Helper()
	f, err := os.Open(filepath.Join(spectest.Shared(t), "data", "blox", "model_cpu_mem_throughput.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tb, err := hostspeed.Read(f, f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// The best-case CPUs found from the measured speeds are those that Synergy's authors wrote
// down beside them, for each model on 1, 2 and 4 devices of their servers with 24 CPUs.
func TestSharedDemands(t *testing.T) {
	c := schedulertest.Nodes(1, 8)
	c.Groups[0].CPUs, c.Groups[0].HostBytes = 24, 500e9
	p, err := newSynergy(policy.Deps{HostSpeeds: sharedProfiles(t)})
	if err != nil {
		t.Fatal(err)
	}
	equal, all := 0, 0
	for _, row := range spectest.Table(t, "data/blox/model_profiles.csv") {
		n, _ := strconv.Atoi(row["gpus"])
		if row["source_tree"] != "workload" || n > 4 {
			continue
		}
		all++
		need := p.(*synergy).demand(&spec.Job{Model: spec.Model{Name: row["model"]}, Devices: n}, &c.Groups[0], n)
		if got := fmt.Sprint(need.MilliCPUs / 1000); got == row["ideal_cpus_per_gpu"] {
			equal++
		} else {
			t.Logf("%s on %d devices: %s CPUs, recorded %s", row["model"], n, got, row["ideal_cpus_per_gpu"])
		}
	}
	t.Logf("%d of %d equal", equal, all)
	if equal < all || all < 20 {
		t.Errorf("%d of %d demands are those recorded", equal, all)
	}
}

// On servers and models of the authors, tuning shortens the average completion time of jobs
// beside shares in proportion to devices.
func TestSharedGain(t *testing.T) {
	speeds := sharedProfiles(t)
	c := schedulertest.Nodes(4, 8)
	c.Groups[0].CPUs, c.Groups[0].HostBytes = 24, 500e9
	var jobs []spec.Job
	models := []string{"res18", "shufflenet", "transformer", "gnmt", "mobilenet", "lstm", "alexnet", "deepspeech"}
	for i := range 160 {
		jobs = append(jobs, spec.Job{ID: spec.JobID(fmt.Sprintf("j%03d", i)), Model: spec.Model{Name: models[i%len(models)]}, Devices: []int{1, 1, 2, 1, 4}[i%5],
			Submit: time.Duration(i) * 4 * time.Minute, Duration: time.Duration(20+i*37%200) * time.Minute})
	}
	mean := func(options map[string]string) float64 {
		p, err := newSynergy(policy.Deps{HostSpeeds: speeds, Options: options})
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(t.Context(), sim.Config{Cluster: c, Jobs: jobs, Policy: p, PolicyName: "synergy", Truth: hostspeed.Truth{Truth: sim.Durations{}, Speeds: speeds},
			Costs: sim.PerStart(func(spec.Job) time.Duration { return 30 * time.Second })})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, j := range r.Jobs {
			sum += j.JCT().Seconds() / float64(len(r.Jobs))
		}
		return sum
	}
	tuned, proportional := mean(nil), mean(map[string]string{"tune": "false"})
	t.Logf("average JCT %.0f s, in proportion %.0f s, %.2f times", tuned, proportional, proportional/tuned)
	if proportional < 1.1*tuned {
		t.Errorf("average JCT %.0f s, in proportion %.0f s", tuned, proportional)
	}
}
