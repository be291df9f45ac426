package dl2

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func testForm() Form {
	return Form{Jobs: 4, Types: []string{"a", "b"}, Speeds: true, SlotSec: 300}
}

// TestDL2Conforms checks that random networks conform, although they are trained for two of
// the three models and see few jobs at once.
func TestDL2Conforms(t *testing.T) {
	for name, f := range map[string]Form{
		"shared":      testForm(),
		"dense":       {Jobs: 3, Types: []string{"a", "c"}, Dense: true, SlotSec: 1200},
		"paramserver": {Jobs: 4, Types: []string{"a", "b"}, Servers: true, Speeds: true, SlotSec: 300},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := NewModel(f, 16, 5)
			if err != nil {
				t.Fatal(err)
			}
			for i := range m.Policy.Params() {
				m.Policy.Params()[i] *= 5
			}
			if f.Servers {
				schedulertest.ConformanceParamServer(t, func(o scheduler.Oracle) (scheduler.Policy, error) {
					return New(policy.Deps{Oracle: o, Servers: o.(scheduler.ServerSpace)}, f, Likeliest(m.Policy))
				})
				return
			}
			schedulertest.Conformance(t, func(o scheduler.Oracle) (scheduler.Policy, error) {
				return New(policy.Deps{Oracle: o}, f, Likeliest(m.Policy))
			})
		})
	}
}

func TestDL2Form(t *testing.T) {
	f := testForm()
	for name, change := range map[string]func(*Form){
		"0 jobs":             func(f *Form) { f.Jobs = 0 },
		"0 job types":        func(f *Form) { f.Types = nil },
		"do not ascend":      func(f *Form) { f.Types = []string{"b", "a"} },
		"a, a do not ascend": func(f *Form) { f.Types = []string{"a", "a"} },
		"slots of 0 s":       func(f *Form) { f.SlotSec = 0 },
	} {
		bad := f
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*Form){
		"jobs at once":      func(f *Form) { f.Jobs = 5 },
		"job types a, b":    func(f *Form) { f.Types = []string{"a", "c"} },
		"parameter servers": func(f *Form) { f.Servers = true },
		"dense":             func(f *Form) { f.Dense = true },
		"speeds":            func(f *Form) { f.Speeds = false },
		"slots":             func(f *Form) { f.SlotSec = 60 },
	} {
		other := f
		change(&other)
		if err := f.Same(other); !errors.Is(err, ErrOtherForm) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.Same(testForm()); err != nil {
		t.Error(err)
	}
}

func TestDL2Files(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		spectest.WriteFile(t, path, b, 0o644)
		return path
	}
	m, err := NewModel(testForm(), 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	m.Origin["teacher"] = "fifo"
	for name, half := range map[string]bool{"full": false, "half": true} {
		b, err := m.Encode(half)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(write(name, b))
		if err != nil || got.Same(m.Form) != nil || got.Origin["teacher"] != "fifo" || (got.Value == nil) != half {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
		cut := write("cut", b[:len(b)-3])
		if _, err := Read(cut); !errors.Is(err, ErrNoPolicy) || !errors.Is(err, nn.ErrCorrupt) || !strings.Contains(err.Error(), cut) {
			t.Errorf("cut off: %v", err)
		}
	}
	if _, err := Read(write("text", []byte("job_id,submit_s,gpus\n"))); !errors.Is(err, ErrNoPolicy) {
		t.Errorf("a text: %v", err)
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	other := testForm()
	other.Jobs = 5
	for name, meta := range map[string]any{
		"another policy":     dl2Meta{Policy: "dl3", Form: m.Form},
		"a form without end": dl2Meta{Policy: "dl2", Form: Form{Jobs: 1 << 30}},
		"other types":        dl2Meta{Policy: "dl2", Form: Form{Jobs: 4, Types: []string{"a", "b", "c"}, SlotSec: 60}},
	} {
		b, err := nn.Encode(meta, false, nn.Named{Name: "policy", Net: m.Policy.Core()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeDL2(b); !errors.Is(err, ErrNoPolicy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b, err := nn.Encode(dl2Meta{Policy: "dl2", Form: testForm()}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeDL2(b); !errors.Is(err, ErrNoPolicy) {
		t.Errorf("no network: %v", err)
	}
}

func TestEmbeddedDL2(t *testing.T) {
	m, err := Read("")
	if err != nil {
		t.Fatal(err)
	}
	if len(embeddedDL2) > 400<<10 || m.Servers || m.Origin["workload"] == "" || m.Origin["teacher"] == "" {
		t.Errorf("%d bytes, %+v", len(embeddedDL2), m.Form)
	}
}

// eager chooses the first allowed job, and ends the slot before a job of model not.
type eager struct{ not string }

func (e eager) Choose(v *View) (int, error) {
	for i := range v.Seats {
		if v.Allowed[i] {
			if v.Seats[i].Job.Job.Model.Name == e.not {
				return v.Void, nil
			}
			return i, nil
		}
	}
	return v.Void, nil
}

// TestDL2OtherJobs checks that a network for jobs without parameter servers is rejected for
// jobs with them, and the reverse.
func TestDL2OtherJobs(t *testing.T) {
	with := testForm()
	with.Servers = true
	if _, err := New(policy.Deps{}, with, eager{}); !errors.Is(err, ErrOtherForm) {
		t.Errorf("with, for jobs without: %v", err)
	}
	if _, err := New(policy.Deps{Servers: &schedulertest.World{}}, testForm(), eager{}); !errors.Is(err, ErrOtherForm) || !strings.Contains(err.Error(), "trained for jobs without parameter servers") {
		t.Errorf("without, for jobs with: %v", err)
	}
}

// TestDL2Slots checks that jobs get the devices that the chooser assigns, first the jobs in the
// first batch of columns. Jobs of unknown models run as submitted. Running jobs change at the
// start of a slot only.
func TestDL2Slots(t *testing.T) {
	w := &schedulertest.World{}
	for _, model := range []string{"a", "b", "other"} {
		for n := 1; n <= 8; n *= 2 {
			w.Add(model, "x", schedulertest.OnePlan(n), spec.NewShape(n), float64(n))
		}
	}
	job := func(id, model string, submit time.Duration, devices int) spec.Job {
		return spec.Job{ID: spec.JobID(id), Model: spec.Model{Name: model}, Plan: schedulertest.OnePlan(devices), Devices: devices, Steps: 4800, Submit: submit}
	}
	cluster := schedulertest.Nodes(1, 8)
	run := func(jobs int, c Chooser, list ...spec.Job) string {
		f := testForm()
		f.Jobs = jobs
		p, err := New(policy.Deps{Oracle: w.Oracle(0, 1)}, f, c)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		r, err := sim.Run(t.Context(), sim.Config{Cluster: cluster, Jobs: list, Policy: p, PolicyName: "dl2", Truth: w.Truth(cluster), Audit: true,
			Observe: func(e sim.Event) {
				if e.Kind == sim.Started || e.Kind == sim.Moved {
					log.WriteString(string(e.Job.ID) + " " + e.Grant.Shape.Devices + " at " + e.At.String() + "\n")
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		for _, warning := range r.Warnings {
			log.WriteString(warning + "\n")
		}
		return log.String()
	}
	for name, c := range map[string]struct{ got, want string }{
		"all to the first, then to the next": {
			run(4, eager{}, job("j1", "a", 0, 1), job("j2", "a", 0, 1)),
			"j1 8 at 0s\nj2 8 at 10m0s\n",
		},
		"running jobs wait for the slot": {
			run(4, eager{"b"}, job("j1", "b", 0, 1), job("j2", "a", time.Minute, 1)),
			"j1 1 at 0s\nj2 4 at 1m0s\nj2 1 at 5m0s\n",
		},
		"beyond the columns": {
			run(1, eager{"b"}, job("j1", "b", 0, 1), job("j2", "a", 0, 1)),
			"j2 8 at 0s\nj1 1 at 10m0s\n",
		},
		"unknown models": {
			run(4, eager{}, job("j1", "a", 0, 1), job("j2", "other", 0, 4)),
			"j2 4 at 0s\nj1 4 at 0s\ndl2 was not trained for other, such jobs run as submitted; pacer learn dl2 trains a policy for the models of a workload\n",
		},
	} {
		if !strings.HasPrefix(c.got, c.want) {
			t.Errorf("%s: got\n%swant\n%s", name, c.got, c.want)
		}
	}
}
