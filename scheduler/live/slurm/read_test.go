package slurm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// reader returns a Cluster that only reads.
func reader() *Cluster {
	return &Cluster{ended: map[int]lastRun{}, Options: Options{Settle: 3 * time.Second,
		Model: func(name string) (spec.Model, error) {
			if name != "m" {
				return spec.Model{}, fmt.Errorf("unknown model %q", name)
			}
			return spec.Model{Name: name}, nil
		},
		NodeType: func(gres string, devices int) (spec.NodeGroup, error) {
			return spec.NodeGroup{Devices: devices, Accelerator: spec.Accelerator{Name: gres}}, nil
		}}}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var now = time.Unix(1795650000, 0)

// TestForms reads the output of Slurm 22.05 and the same in the form of data_parser v0.0.40.
func TestForms(t *testing.T) {
	for _, form := range []string{"22.05", "v0.0.40"} {
		s, err := reader().state(readFile(t, "nodes-"+form+".json"), readFile(t, "jobs-"+form+".json"), now)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Faults) > 0 || !s.Even {
			t.Errorf("%s: faults %v, even %v", form, s.Faults, s.Even)
		}
		for i, n := range s.Nodes {
			used, typ := 2, "a100"
			if i > 1 {
				used, typ = 0, "v100"
			}
			if n.Name != fmt.Sprintf("node%d", i+1) || n.Mode != live.Up || n.UsedDevices != used || n.Type.Devices != 2 || n.Type.Accelerator.Name != typ || n.Type.CPUs != 4 || n.Type.HostBytes != 4000<<20 {
				t.Errorf("%s: node %+v", form, n)
			}
		}
		if len(s.Nodes) != 4 || len(s.Jobs) != 2 {
			t.Fatalf("%s: %d nodes, %d jobs", form, len(s.Nodes), len(s.Jobs))
		}
		held, runs := s.Jobs[0], s.Jobs[1]
		if held.Spec.ID != "1" || held.Phase != live.Held || held.Spec.Devices != 1 || held.Spec.GlobalBatch != 4 || held.Spec.Steps != 100 || held.Spec.Host.MilliCPUs != 1000 || held.Spec.Host.Bytes != 100<<20 || held.Submitted.Unix() != 1795648404 || held.Done >= 0 {
			t.Errorf("%s: held job %+v", form, held)
		}
		if runs.Spec.ID != "3" || runs.Phase != live.Running || runs.Slots.String() != "node3=2+node4=2" || runs.Spec.Devices != 1 || runs.Spec.Weight != 2 || runs.Record.RunGeneration != 1 || runs.Started.Unix() != 1795649888 {
			t.Errorf("%s: running job %+v", form, runs)
		}
	}
}

// TestDevicesUnknown: Slurm may know no devices of a job, or not all: it has those that it was started on. It was resized if
// there are more, or others.
func TestDevicesUnknown(t *testing.T) {
	for devices, want := range map[string]string{"gpu:v100:0": "node3=2+node4=2", "gpu:v100:1(IDX:0)": "node3=2+node4=2", "gpu:v100:4(IDX:0-3)": "node3=4+node4=4"} {
		text := strings.ReplaceAll(string(readFile(t, "jobs-22.05.json")), "gpu:v100:2(IDX:0-1)", devices)
		s, err := reader().state(readFile(t, "nodes-22.05.json"), []byte(text), now)
		if err != nil || len(s.Jobs) != 2 || s.Jobs[1].Slots.String() != want {
			t.Errorf("%s: %+v, %v, want %s", devices, s.Jobs, err, want)
		}
	}
}

// TestPartlyDone: a rank of the present run has ended well, once there is the file that says so.
func TestPartlyDone(t *testing.T) {
	progress := filepath.Join(t.TempDir(), "steps.json")
	for restarts, want := range map[int]bool{0: true, 1: false} {
		if err := os.WriteFile(EndedFile(progress, restarts), []byte("0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(readFile(t, "jobs-22.05.json")), "steps=600,", "steps=600,release-after=30m,progress="+progress+",")
		s, err := reader().state(readFile(t, "nodes-22.05.json"), []byte(text), now)
		if err != nil || len(s.Jobs) != 2 || s.Jobs[1].PartlyDone != want || s.Jobs[1].ReleaseAfter != 30*time.Minute {
			t.Errorf("file of restart %d: %+v, %v, want %v", restarts, s.Jobs, err, want)
		}
		if err := os.Remove(EndedFile(progress, restarts)); err != nil {
			t.Fatal(err)
		}
	}
}

// change returns the jobs with a field of the first one changed.
func change(t *testing.T, field string, value any) []byte {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(readFile(t, "jobs-22.05.json"), &all); err != nil {
		t.Fatal(err)
	}
	jobs := all["jobs"].([]any)
	jobs[0].(map[string]any)[field] = value
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBadJobs has requests that cannot be used: each is a fault that names the job, and the
// others are read all the same.
func TestBadJobs(t *testing.T) {
	for _, c := range []struct {
		field string
		value any
		want  string
	}{
		{"comment", "pacer:", "model is missing"},
		{"comment", "pacer:model=x", `model: unknown model "x"`},
		{"comment", "pacer:model=m,batch=-1", `batch: "-1" is no whole number`},
		{"comment", "pacer:model=m,steps=NaN", `steps: "NaN" is no number above 0`},
		{"comment", "pacer:model=m,steps=1,steps=2", "steps is given twice"},
		{"comment", "pacer:model=m,color=red", "unknown key"},
		{"comment", "pacer:model=m,duration=-3s", "is no duration above 0"},
		{"comment", "pacer:model=m,plan=dp=x", "plan:"},
		{"comment", 7, "cannot unmarshal"},
		{"requeue", false, "may not be requeued"},
		{"array_task_string", "1-5", "an array"},
		{"het_job_id", 5, "heterogeneous"},
		{"tres_per_node", "", "no GPUs requested"},
		{"tres_per_node", "gres:gpu:a100:99999999", "is no number in 0.."},
		{"priority", "high", "is no number"},
	} {
		s, err := reader().state(readFile(t, "nodes-22.05.json"), change(t, c.field, c.value), now)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Jobs) != 1 || len(s.Faults) != 1 || s.Faults[0].Object != "job 1" || !strings.Contains(s.Faults[0].Err.Error(), c.want) {
			t.Errorf("%s %v: %d jobs, faults %v, want one with %q", c.field, c.value, len(s.Jobs), s.Faults, c.want)
		}
	}
	s, err := reader().state(readFile(t, "nodes-22.05.json"), change(t, "admin_comment", `{"generation":-1}`), now)
	if err != nil || len(s.Jobs) != 2 || len(s.Faults) != 1 || s.Jobs[0].Record.Generation != 0 {
		t.Errorf("a broken record: %v, %+v", err, s)
	}
	for _, text := range []string{"", "{", `{"jobs": 3}`, "[]"} {
		if _, err := reader().state(readFile(t, "nodes-22.05.json"), []byte(text), now); err == nil {
			t.Errorf("jobs %q: no error", text)
		}
	}
}

// TestUnowned: devices that Slurm counts as used for a while without a job are used by others, until it does not.
func TestUnowned(t *testing.T) {
	c := reader()
	for i, step := range []struct {
		after       time.Duration
		used        string
		want, fault int
	}{
		{0, "gpu:v100:1(IDX:0)", 0, 0}, {9 * time.Second, "gpu:v100:1(IDX:0)", 0, 0}, {10 * time.Second, "gpu:v100:1(IDX:0)", 1, 1},
		{11 * time.Second, "gpu:v100:2(IDX:0-1)", 2, 1}, {12 * time.Second, "gpu:v100:0(IDX:N/A)", 0, 0}, {13 * time.Second, "gpu:v100:2(IDX:0-1)", 0, 0},
	} {
		nodes := strings.ReplaceAll(string(readFile(t, "nodes-22.05.json")), `"gres": "gpu:v100:2",`, `"gres": "gpu:v100:2", "gres_used": "`+step.used+`",`) // of two nodes
		s, err := c.state([]byte(nodes), []byte(`{"jobs":[]}`), now.Add(step.after))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Nodes[3].UsedDevices; got != step.want || len(s.Faults) != 2*step.fault {
			t.Errorf("step %d: %d devices are used, faults %v, want %d and %d of each node", i, got, s.Faults, step.want, step.fault)
		}
	}
}

// TestCancelled: a job that its user cancelled is known from one that ended.
func TestCancelled(t *testing.T) {
	for state, want := range map[string]int{"CANCELLED": 1, "COMPLETED": 0, "FAILED": 0} {
		s, err := reader().state(readFile(t, "nodes-22.05.json"), change(t, "job_state", state), now)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Jobs) != 1 || len(s.Cancelled) != want || want == 1 && s.Cancelled[0] != "1" {
			t.Errorf("%s: %d jobs, cancelled %v", state, len(s.Jobs), s.Cancelled)
		}
	}
}

// TestPhases follows a job through a requeue: it is held only some time after its run ended, and
// one that Slurm requeued by itself differs from one that pacer released.
func TestPhases(t *testing.T) {
	c := reader()
	at := func(after time.Duration, state string, priority float64, restarts, known int) live.Phase {
		return c.phase(&job{ID: 1, State: words{state}, Priority: number(priority), Restarts: number(restarts), comment: comment{RestartCount: known}}, now.Add(after))
	}
	for _, step := range []struct {
		got, want live.Phase
	}{
		{at(0, "PENDING", 0, 0, 0), live.Held},
		{at(0, "PENDING", 5, 0, 0), live.Released},
		{at(time.Second, "RUNNING", 5, 0, 0), live.Running},
		{at(2*time.Second, "COMPLETING", 0, 0, 0), live.Stopping},
		{at(3*time.Second, "PENDING", 0, 1, 0), live.Stopping},
		{at(5*time.Second, "PENDING", 0, 1, 0), live.Stopping},
		{at(6*time.Second, "PENDING", 0, 1, 0), live.Held},
		{at(7*time.Second, "PENDING", 5, 1, 1), live.Released},
		{at(8*time.Second, "PENDING", 5, 2, 1), live.Requeued},
		{at(8*time.Second, "RUNNING", 5, 2, 2), live.Running},
		{at(8900*time.Millisecond, "PENDING", 0, 3, 2), live.Stopping},
		{at(10999*time.Millisecond, "PENDING", 0, 3, 2), live.Stopping},
		{at(11*time.Second, "PENDING", 0, 3, 2), live.Held}, // three seconds later by the clock
		{at(12*time.Second, "NODE_FAIL", 5, 2, 1), live.Ended},
		{at(12*time.Second, "CANCELLED", 0, 2, 1), live.Ended},
	} {
		if step.got != step.want {
			t.Errorf("%s, want %s", step.got, step.want)
		}
	}
}

func TestModes(t *testing.T) {
	for state, want := range map[string]live.Mode{
		"idle": live.Up, "MIXED": live.Up, "IDLE+DRAIN": live.Draining, "ALLOCATED+NOT_RESPONDING": live.Draining, "down": live.Down, "DOWN+DRAIN": live.Down,
		"UNKNOWN":          live.Draining, // for a moment after slurmctld was restarted
		"IDLE+MAINTENANCE": live.Draining, "IDLE+REBOOT_ISSUED": live.Draining, "IDLE+INVALID_REG": live.Draining, "IDLE+BLOCKED": live.Draining, "MIXED+POWER_DRAIN": live.Draining,
		"ALLOCATED+POWER_DOWN": live.Draining, "ALLOCATED+FAIL": live.Draining, // its jobs run on
		"DYNAMIC_FUTURE": live.Down, "IDLE+CLOUD+POWERED_DOWN": live.Down, "MIXED+PLANNED": live.Up, "IDLE+POWERING_UP": live.Up,
	} {
		var w words
		if err := json.Unmarshal([]byte(`"`+state+`"`), &w); err != nil {
			t.Fatal(err)
		}
		if got := (&node{State: w}).mode(); got != want {
			t.Errorf("%s is %s, want %s", state, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a,b": "a b", "n[1-3,07],m1": "n1 n2 n3 n07 m1", "n[08-10]x": "n08x n09x n10x"} {
		got, err := hosts(text)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"n[", "n[1", "n[x]", "n[3-1]", "n[1-2][3-4]", "n[1-99999999999]"} {
		if got, err := hosts(text); err == nil {
			t.Errorf("%q: %q, want an error", text, got)
		}
	}
}

func TestGRES(t *testing.T) {
	for text, want := range map[string]string{
		"": " 0", "gpu": " 1", "gpu:2": " 2", "gpu:a100:2(IDX:0-1)": "a100 2", "gres/gpu:4": " 4", "gres:gpu:v100:1": "v100 1", "gpu:a100:2(S:0-1),shard:8": "a100 2",
		"gpu:a100:1(IDX:0,2),gpu:a100:1": "a100 2", "gpu:a100": "a100 1", "license:3": " 0",
		"gpu:(null):0(IDX:N/A)": " 0", "gpu:(null):8(IDX:0-7)": " 8", "gpu:a100:2,gpu:v100:1(S:0),gpu:a100:1": "a100+v100 4",
	} {
		typ, n, err := gres(text)
		if got := fmt.Sprintf("%s %d", typ, n); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	if _, _, err := gres("gpu:a100:-1"); err == nil {
		t.Error("a negative number is no error")
	}
}

// FuzzState feeds outputs of Slurm: none may panic, and no job has a request out of range.
func FuzzState(f *testing.F) {
	for _, form := range []string{"22.05", "v0.0.40"} {
		b, err := os.ReadFile("testdata/jobs-" + form + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	nodes, err := os.ReadFile("testdata/nodes-22.05.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, jobs []byte) {
		s, err := reader().state(nodes, jobs, now)
		if err != nil {
			return
		}
		for _, j := range s.Jobs {
			if err := j.Spec.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestFindRecord(t *testing.T) {
	r, err := findRecord(`JobId=1 AdminComment={"run-plan":"dp=2","run-slots":"a=2"} Comment=pacer:model=m`, "1")
	if err != nil || r.RunPlan != "dp=2" || r.RunSlots.Devices() != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, text := range []string{"JobId=1", "AdminComment={}", `AdminComment={"run-plan":"dp=2"}`, "AdminComment={x}"} {
		if _, err := findRecord(text, "1"); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}
