package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// world has speeds of model "m" on 1 to 4 devices.
func world() *schedulertest.World {
	w := &schedulertest.World{}
	for _, accelerator := range []string{"a100", "v100"} {
		for n := 1; n <= 4; n *= 2 {
			w.Add("m", accelerator, schedulertest.OnePlan(n), spec.Packed(n, 2), float64(n))
		}
	}
	return w
}

func options() slurm.Options {
	return slurm.Options{
		Model: func(name string) (spec.Model, error) {
			if name != "m" {
				return spec.Model{}, fmt.Errorf("unknown model %q", name)
			}
			return spec.Model{Name: name}, nil
		},
		NodeType: func(gres string, devices int) (spec.NodeGroup, error) {
			return spec.NodeGroup{Devices: devices, Accelerator: spec.Accelerator{Name: gres}}, nil
		},
		Poll: 300 * time.Millisecond, Limit: 5 * time.Minute,
	}
}

// drive runs a controller until a condition holds, or fails. Every observation is checked:
// no node gives more than it has, and no job is left in state FAILED.
func drive(t *testing.T, c live.Cluster, policyName string, holds func(s *live.State) bool) []live.Event {
	t.Helper()
	var events []live.Event
	o := live.Options{
		Cluster: c, StartCost: time.Second, StaleAfter: 5 * time.Minute,
		Policy: func(spec.Cluster) (scheduler.Policy, error) {
			return builtin.Policies.New(policy.Spec{Name: policyName}, policy.Deps{Oracle: world().Oracle(0, 1)})
		},
		OnEvent: func(e live.Event) { events = append(events, e) },
	}
	controller, err := live.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(spectest.Patience(90 * time.Second)); ; time.Sleep(200 * time.Millisecond) {
		s, err := c.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		used := map[string]int{}
		for _, j := range s.Jobs {
			for name, n := range j.Slots {
				used[name] += n
			}
		}
		for _, n := range s.Nodes {
			if used[n.Name]+n.UsedDevices > n.Type.Devices {
				t.Fatalf("node %s: %d devices in use", n.Name, used[n.Name]+n.UsedDevices)
			}
		}
		if holds(s) {
			return events
		}
		if time.Now().After(end) {
			t.Fatalf("not reached; jobs %+v\nevents %+v", s.Jobs, events)
		}
		if _, err := controller.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

const sleeper = "#!/bin/bash\ntrap 'kill $!; exit 0' TERM\necho start $SLURM_RESTART_COUNT on $SLURM_JOB_NODELIST gpus $SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES\nsleep %s & wait\n"

// TestReal runs 8 jobs under rubick on a real Slurm: all end, and none is lost to a revoked
// credential.
func TestReal(t *testing.T) {
	real := slurmtest.Start(t, 2, 1)
	c, err := slurm.New(t.Context(), options())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range 8 {
		ids = append(ids, real.Submit(fmt.Sprintf(sleeper, "4"), "-n1", "-N1", fmt.Sprintf("--gres=gpu:%d", 1+i%2), "--comment=pacer:model=m,batch=1,steps=100"))
	}
	foreign := real.Run("sbatch", "--parsable", "-n1", "--mem-per-cpu=100", "--gres=gpu:v100:1", "-o", "/dev/null", "--wrap", "sleep 1000")
	for end := time.Now().Add(spectest.Patience(60 * time.Second)); real.Run("squeue", "-h", "-j", foreign, "-o", "%T") != "RUNNING"; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) { // before the first decision, which else may want its device
			t.Fatal("the job of another user does not start")
		}
	}
	events := drive(t, c, "rubick", func(s *live.State) bool { return len(s.Jobs) == 0 })
	for _, e := range events {
		if e.Warning {
			t.Errorf("%+v", e)
		}
	}
	for _, id := range ids {
		if out := real.Run("scontrol", "-o", "show", "job", id); !strings.Contains(out, "JobState=COMPLETED") {
			t.Errorf("%s", out)
		}
	}
	if out := real.Run("squeue", "-h", "-j", foreign, "-o", "%T"); out != "RUNNING" {
		t.Errorf("the job of another user is %s", out)
	}
}

// TestRestart moves a job to other devices and back, as decisions do, several times in a row.
func TestRestart(t *testing.T) {
	real := slurmtest.Start(t, 2, 0)
	c, err := slurm.New(t.Context(), options())
	if err != nil {
		t.Fatal(err)
	}
	id := real.Submit(fmt.Sprintf(sleeper, "600"), "-n1", "-N1", "--gres=gpu:1", "--comment=pacer:model=m,batch=1,steps=100000")
	for i, want := range []string{"a-1=2+a-2=2", "a-1=1", "a-1=2", "a-1=1"} {
		slots, err := live.ParseSlots(want)
		if err != nil {
			t.Fatal(err)
		}
		r := live.Record{Generation: int64(i + 1), Plan: "tp=4", Slots: slots, RunGeneration: int64(i + 1), RunPlan: "tp=4", RunSlots: slots}
		await(t, c, id, func(j *live.Job) bool {
			switch {
			case j.Phase == live.Running && j.Slots.String() == want:
				return true
			case j.Phase == live.Running && j.Record.Generation != r.Generation:
				if err := c.Stop(t.Context(), j); err != nil {
					t.Fatal(err)
				}
			case j.Phase == live.Held:
				if err := c.Start(t.Context(), j, r); err != nil {
					t.Fatal(err)
				}
			}
			return false
		})
	}
}

// TestTotalGPUs resizes a job that was submitted with a number of GPUs in all, as --gpus does.
func TestTotalGPUs(t *testing.T) {
	real := slurmtest.Start(t, 2, 0)
	c, err := slurm.New(t.Context(), options())
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"--gpus=2", "--gpus=a100:2"} {
		id := real.Submit(fmt.Sprintf(sleeper, "600"), "-n1", request, "--comment=pacer:model=m,batch=1,steps=100000")
		for i, want := range []string{"a-1=2+a-2=2", "a-2=1"} {
			slots, err := live.ParseSlots(want)
			if err != nil {
				t.Fatal(err)
			}
			r := live.Record{Generation: int64(i + 1), Plan: "tp=4", Slots: slots, RunGeneration: int64(i + 1), RunPlan: "tp=4", RunSlots: slots}
			await(t, c, id, func(j *live.Job) bool {
				if j.Spec.Devices != 2 {
					t.Fatalf("%s: the job requests %d devices", request, j.Spec.Devices)
				}
				switch {
				case j.Phase == live.Running && j.Slots.String() == want:
					return true
				case j.Phase == live.Running:
					err = c.Stop(t.Context(), j)
				case j.Phase == live.Held:
					err = c.Start(t.Context(), j, r)
				}
				if err != nil {
					t.Fatal(err)
				}
				return false
			})
		}
		real.Run("scancel", id)
		for end := time.Now().Add(spectest.Patience(30 * time.Second)); real.Run("squeue", "-h") != ""; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the job does not end")
			}
		}
	}
}

// TestStopCompleted stops a job that has completed since it was observed: it does not run again.
func TestStopCompleted(t *testing.T) {
	real := slurmtest.Start(t, 1, 0)
	c, err := slurm.New(t.Context(), options())
	if err != nil {
		t.Fatal(err)
	}
	seen := filepath.Join(t.TempDir(), "seen")
	id := real.Submit("#!/bin/bash\necho run\nuntil [ -e "+seen+" ]; do sleep 0.1; done\n", "-n1", "--gres=gpu:1", "--comment=pacer:model=m,batch=1,steps=100")
	real.Run("scontrol", "release", id)
	var observed live.Job
	await(t, c, id, func(j *live.Job) bool { observed = *j; return j.Phase == live.Running })
	if err := os.WriteFile(seen, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := func() string { return real.Run("scontrol", "-o", "show", "job", id) }
	for end := time.Now().Add(spectest.Patience(30 * time.Second)); !strings.Contains(state(), "JobState=COMPLETED"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the job does not complete")
		}
	}
	if err := c.Stop(t.Context(), &observed); err != nil {
		t.Error(err)
	}
	if out := state(); !strings.Contains(out, "JobState=COMPLETED") || real.Output(id) != "run\n" {
		t.Errorf("after a late stop: %s\noutput %q", out, real.Output(id))
	}
}

// await observes until a condition holds for a job.
func await(t *testing.T, c live.Cluster, id string, holds func(j *live.Job) bool) {
	t.Helper()
	for end := time.Now().Add(spectest.Patience(60 * time.Second)); ; time.Sleep(100 * time.Millisecond) {
		s, err := c.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Jobs) != 1 || string(s.Jobs[0].Spec.ID) != id {
			t.Fatalf("jobs %+v, faults %v", s.Jobs, s.Faults)
		}
		if holds(&s.Jobs[0]) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not reached: %+v", s.Jobs[0])
		}
	}
}
