package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// fakeSlurm answers like the programs of Slurm.
type fakeSlurm struct {
	calls  []string
	inputs []string
	answer func(call string, n int) (string, error) // n counts the calls of the program
	count  map[string]int
}

func (f *fakeSlurm) run(_ context.Context, input string, args ...string) ([]byte, error) {
	if f.count == nil {
		f.count = map[string]int{}
	}
	f.calls, f.inputs = append(f.calls, strings.Join(args, " ")), append(f.inputs, input)
	f.count[args[0]]++
	out, err := f.answer(args[0], f.count[args[0]])
	return []byte(out), err
}

func (f *fakeSlurm) slurm() Slurm {
	return Slurm{Poll: time.Millisecond, Patience: time.Minute, Command: f.run}
}

// queueOf is the output of squeue with one job: state and exit code as JSON.
func queueOf(state, exit string) string {
	return fmt.Sprintf(`{"jobs": [{"job_id": 7, "comment": "k", "job_state": %s, "exit_code": %s}, {"job_id": 8, "comment": null, "job_state": "RUNNING", "exit_code": 0}]}`, state, exit)
}

// TestSlurmStates reads the states of Slurm 22.05 and of later releases.
func TestSlurmStates(t *testing.T) {
	for _, c := range []struct {
		state, exit string
		want        JobEnd
		external    bool
	}{
		{`"COMPLETED"`, "0", JobEnd{JobEnded, 0}, false},
		{`"FAILED"`, "768", JobEnd{JobEnded, 3}, false},
		{`["FAILED"]`, `{"status": ["ERROR"], "return_code": 3}`, JobEnd{JobEnded, 3}, false},
		{`["FAILED"]`, `{"return_code": {"set": true, "infinite": false, "number": 3}}`, JobEnd{JobEnded, 3}, false},
		{`["COMPLETED"]`, `{"return_code": {"set": true, "infinite": false, "number": 0}}`, JobEnd{JobEnded, 0}, false},
		{`"TIMEOUT"`, "15", JobEnd{JobTimeout, -1}, false},
		{`"PREEMPTED"`, "15", JobEnd{JobPreempt, -1}, true},
		{`["PREEMPTED"]`, "null", JobEnd{JobPreempt, -1}, true},
		{`"NODE_FAIL"`, "0", JobEnd{JobNodeFail, -1}, true},
		{`"CANCELLED"`, "15", JobEnd{JobCancel, -1}, true},
	} {
		f := &fakeSlurm{answer: func(_ string, n int) (string, error) {
			switch n {
			case 1:
				return queueOf(`"PENDING"`, "0"), nil
			case 2:
				return queueOf(`["RUNNING", "COMPLETING"]`, "0"), nil
			}
			return queueOf(c.state, c.exit), nil
		}}
		h, err := f.slurm().Find(t.Context(), "k")
		if err != nil || h == nil {
			t.Fatal(h, err)
		}
		if end, err := h.Wait(t.Context(), nil); err != nil || end != c.want || end.External() != c.external {
			t.Errorf("state %s, exit code %s: %+v, %v, want %+v", c.state, c.exit, end, err, c.want)
		}
		if h, err := f.slurm().Find(t.Context(), "k"); h != nil || err != nil {
			t.Errorf("state %s: found %v, %v, want none", c.state, h, err)
		}
	}
}

// TestSlurmSubmit: the script has the options of the job, its words are quoted, and a controller that restarts does not get
// the job twice.
func TestSlurmSubmit(t *testing.T) {
	silent := errors.New("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)")
	lost := false
	f := &fakeSlurm{answer: func(program string, n int) (string, error) {
		switch {
		case program == "sbatch" && !lost:
			lost = true // the job is queued and the answer is lost
			return "", silent
		case program == "squeue" && !lost:
			return `{"jobs": []}`, nil
		case program == "squeue" && n == 2:
			return "", silent
		}
		return queueOf(`"PENDING"`, "0"), nil
	}}
	j := Job{Key: "k", Args: []string{"/opt/pa cer", "it's"}, GPUs: 8, Limit: 61 * time.Second, Output: "/data/100%/log"}
	h, err := f.slurm().Submit(t.Context(), j)
	if err != nil || h.(*slurmJob).id != 7 || f.count["sbatch"] != 1 {
		t.Errorf("%+v, %v, %d calls of sbatch, want job 7 and 1", h, err, f.count["sbatch"])
	}
	text := strings.Join(f.inputs, "")
	for _, want := range []string{"#!/bin/sh\n", "#SBATCH '--job-name=k'\n", "'--dependency=singleton'", "'--gres=gpu:8'", "'--time=2'", "'--requeue'",
		"'--output=/data/100%%/log'", `exec '/opt/pa cer' 'it'\''s'` + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the script has no %q:\n%s", want, text)
		}
	}
	if text := script(Job{Key: "k", Args: []string{"a"}, Nodes: 2}); !strings.Contains(text, "'--nodes=2'") || !strings.Contains(text, `; exec "$@"' sh 'a'`) || !strings.Contains(text, "--exclusive") {
		t.Errorf("script of two nodes:\n%s", text)
	}
}

// TestSlurmArray: an array has ended once all its tasks have, as the first that failed; tasks that ended first may be
// forgotten by then.
func TestSlurmArray(t *testing.T) {
	task := func(id int, array, state, exit string) string {
		return fmt.Sprintf(`{"job_id": %d, "comment": "k", "array_job_id": %s, "job_state": %q, "exit_code": %s}`, id, array, state, exit)
	}
	later := `{"set": true, "infinite": false, "number": 7}`
	for want, first := range map[JobEnd]string{
		{JobEnded, 0}:     task(8, "7", "COMPLETED", "0"),
		{JobEnded, 3}:     task(8, later, "FAILED", "768"),
		{JobNodeFail, -1}: task(8, later, "NODE_FAIL", "0"),
	} {
		f := &fakeSlurm{answer: func(_ string, n int) (string, error) {
			parts := map[int][]string{
				1: {task(9, "6", "RUNNING", "0"), task(7, "7", "PENDING", "0")}, // of another array; of this
				2: {first, task(7, "7", "RUNNING", "0")},
				3: {task(7, later, "RUNNING", "0")},
				4: {task(7, "7", "COMPLETED", "0")},
			}[n]
			return `{"jobs": [` + strings.Join(parts, ", ") + `]}`, nil
		}}
		end, err := (&slurmJob{f.slurm(), "k", 7}).Wait(t.Context(), nil)
		if err != nil || end != want || f.count["squeue"] != 4 {
			t.Errorf("%+v, %v after %d looks, want %+v after 4", end, err, f.count["squeue"], want)
		}
	}
	f := &fakeSlurm{answer: func(string, int) (string, error) { return `{"jobs": [` + task(9, later, "RUNNING", "0") + `]}`, nil }}
	if h, err := f.slurm().Find(t.Context(), "k"); err != nil || h.(*slurmJob).id != 7 {
		t.Errorf("found %+v, %v, want array 7", h, err)
	}
	text := script(Job{Key: "k", Args: []string{"a"}, Tasks: 4, Output: "/d/100%"})
	if !strings.Contains(text, "'--array=0-3'") || !strings.Contains(text, "'--output=/d/100%%.%a'") || strings.Contains(text, "singleton") {
		t.Errorf("script of an array:\n%s", text)
	}
}

// TestTaskNumber reads the number of a task of both clusters.
func TestTaskNumber(t *testing.T) {
	for _, name := range taskVariables {
		t.Setenv(name, "")
		_ = os.Unsetenv(name)
	}
	if _, err := TaskNumber(); err == nil {
		t.Error("a number outside of tasks")
	}
	t.Setenv("JOB_COMPLETION_INDEX", "5")
	if n, err := TaskNumber(); n != 5 || err != nil {
		t.Error(n, err)
	}
	t.Setenv("SLURM_ARRAY_TASK_ID", "x")
	if n, err := TaskNumber(); err == nil || !strings.Contains(err.Error(), `$SLURM_ARRAY_TASK_ID is "x"`) {
		t.Error(n, err)
	}
}

// TestSlurmErrors: bad jobs and answers give errors that name them.
func TestSlurmErrors(t *testing.T) {
	for want, j := range map[string]Job{
		`key "a b" of a job`:   {Key: "a b", Args: []string{"x"}},
		`key "" of a job`:      {Args: []string{"x"}},
		"job k has no program": {Key: "k"},
		"-1 nodes":             {Key: "k", Args: []string{"x"}, Nodes: -1},
	} {
		if _, err := (Slurm{}).Submit(t.Context(), j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f := &fakeSlurm{answer: func(program string, _ int) (string, error) {
		if program == "sbatch" {
			return "hello\n", nil
		}
		return `{"jobs": []}`, nil
	}}
	if _, err := f.slurm().Submit(t.Context(), Job{Key: "k", Args: []string{"x"}}); err == nil || !strings.Contains(err.Error(), `sbatch printed "hello", want the id`) {
		t.Error(err)
	}
	f = &fakeSlurm{answer: func(string, int) (string, error) { return "no JSON", nil }}
	if _, err := f.slurm().Find(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "output of squeue") {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (Slurm{}).Find(t.Context(), "k"); !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), "install the client programs of Slurm") {
		t.Error(err)
	}
}

// TestSlurmForgets: a job that the controller no longer lists has an unknown end, and a result ends the wait while the
// controller is silent.
func TestSlurmForgets(t *testing.T) {
	f := &fakeSlurm{answer: func(string, int) (string, error) { return `{"jobs": []}`, nil }}
	if end, err := (&slurmJob{f.slurm(), "k", 7}).Wait(t.Context(), nil); err != nil || end.State != JobUnknown || !end.External() {
		t.Errorf("%+v, %v", end, err)
	}
	f = &fakeSlurm{answer: func(string, int) (string, error) { return "", errors.New("Connection refused") }}
	looks := 0
	end, err := (&slurmJob{f.slurm(), "k", 7}).Wait(t.Context(), func() bool { looks++; return looks == 3 })
	if err != nil || end != (JobEnd{}) || looks != 3 {
		t.Errorf("%+v, %v after %d looks", end, err, looks)
	}
	short := f.slurm()
	short.Patience = 20 * time.Millisecond
	if _, err := (&slurmJob{short, "k", 7}).Wait(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Connection refused") {
		t.Errorf("%v, want the error of a controller that stays silent", err)
	}
	if err := (&slurmJob{short, "k", 7}).Cancel(t.Context()); err == nil {
		t.Error("a controller that stays silent cancels")
	}
}
