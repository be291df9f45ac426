package runner

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// jobs is a Cluster that runs a function for each job, at once.
type jobs struct {
	do func(j executor.Job) (executor.JobEnd, error)

	mu        sync.Mutex
	submitted []string
	queued    map[string]bool // of an earlier process
}

func (c *jobs) Submit(_ context.Context, j executor.Job) (executor.Handle, error) {
	c.mu.Lock()
	c.submitted = append(c.submitted, j.Key)
	c.mu.Unlock()
	if err := j.Validate(); err != nil {
		return nil, err
	}
	end, err := c.do(j)
	return endedJob{end}, err
}

func (c *jobs) Find(_ context.Context, key string) (executor.Handle, error) {
	if c.queued[key] {
		return endedJob{}, nil
	}
	return nil, nil
}

type endedJob struct{ end executor.JobEnd }

func (j endedJob) Wait(context.Context, func() bool) (executor.JobEnd, error) { return j.end, nil }
func (endedJob) Cancel(context.Context) error                                 { return nil }

// answers writes the row of the configuration in the request of a job.
func answers(j executor.Job) (executor.JobEnd, error) {
	file := j.Args[len(j.Args)-1]
	var c spec.Config
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return executor.JobEnd{}, err
	}
	text, err = json.Marshal(spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{0.5}, Env: map[string]string{"node": "n1"}})
	if err != nil {
		return executor.JobEnd{}, err
	}
	return executor.JobEnd{State: executor.JobEnded}, os.WriteFile(RemoteResult(file), text, 0o600)
}

func newRemote(t *testing.T, dir string, c *jobs) *Remote {
	t.Helper()
	r, err := NewRemote(RemoteOptions{Cluster: c, Dir: dir, Args: []string{"pacer", "profile", "point"}, Run: "campaign/a#1",
		Request: func(c spec.Config) any { return c }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func remoteConfig(mb int) spec.Config {
	return spec.Config{Model: spec.Model{Name: "m", SeqLen: 64}, Accelerator: spec.Accelerator{Name: "a"}, Shape: spec.NewShape(1), Plan: spec.Plan{MicroBatch: mb}}
}

func TestRemoteRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jobs")
	c := &jobs{do: answers}
	r := newRemote(t, dir, c)
	for range 2 { // the second time the point is measured once more
		m, err := r.Run(t.Context(), remoteConfig(1))
		if err != nil || m.Outcome != spec.OK || m.Env["node"] != "n1" || m.Config != remoteConfig(1) {
			t.Fatalf("%+v, %v", m, err)
		}
	}
	if len(c.submitted) != 2 {
		t.Errorf("%d jobs, want 2", len(c.submitted))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// TestRemoteEnds: a job without a result has failed, and one that was ended from outside is measured once more.
func TestRemoteEnds(t *testing.T) {
	for state, want := range map[executor.JobState]struct {
		outcome   spec.Outcome
		retryable bool
	}{
		executor.JobEnded: {spec.Failed, false}, executor.JobTimeout: {spec.Timeout, false}, executor.JobPreempt: {spec.Failed, true},
		executor.JobNodeFail: {spec.Failed, true}, executor.JobCancel: {spec.Failed, true}, executor.JobUnknown: {spec.Failed, true},
	} {
		r := newRemote(t, t.TempDir(), &jobs{do: func(j executor.Job) (executor.JobEnd, error) {
			return executor.JobEnd{State: state, Code: 3}, os.WriteFile(j.Output, []byte("no torch\n"), 0o600)
		}})
		m, err := r.Run(t.Context(), remoteConfig(1))
		if err != nil || m.Outcome != want.outcome || (profiler.Retryable(m) != "") != want.retryable || !strings.Contains(m.Env[profiler.EnvLog], "no torch") {
			t.Errorf("%s: %+v, %v", state, m, err)
		}
	}
	r := newRemote(t, t.TempDir(), &jobs{do: func(j executor.Job) (executor.JobEnd, error) {
		return executor.JobEnd{State: executor.JobEnded}, os.WriteFile(RemoteResult(j.Args[len(j.Args)-1]), []byte("{"), 0o600)
	}})
	if _, err := r.Run(t.Context(), remoteConfig(1)); err == nil || !strings.Contains(err.Error(), "result.json") {
		t.Errorf("a broken result: %v", err)
	}
	var answer struct{}
	r = newRemote(t, t.TempDir(), &jobs{do: func(executor.Job) (executor.JobEnd, error) {
		return executor.JobEnd{State: executor.JobEnded, Code: 127}, nil
	}})
	if err := r.Ask(t.Context(), "node", []string{"pacer"}, 1, &answer); !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), "exit status 127") {
		t.Errorf("no answer: %v", err)
	}
}

// TestRemoteUnderWay: results and jobs of an earlier process are found, its other directories are removed, and those of
// another run stay.
func TestRemoteUnderWay(t *testing.T) {
	dir := t.TempDir()
	c := &jobs{do: answers, queued: map[string]bool{}}
	before := newRemote(t, dir, c)
	open := []spec.Config{remoteConfig(1), remoteConfig(2), remoteConfig(4)}
	if _, err := before.Run(t.Context(), open[0]); err != nil { // a result that was not stored
		t.Fatal(err)
	}
	for _, x := range append(open[1:], remoteConfig(8)) {
		at := filepath.Join(dir, before.key(x))
		if err := errors.Join(os.Mkdir(at, 0o700), os.WriteFile(filepath.Join(at, remoteRequest), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c.queued[before.key(open[1])] = true // of open[2], the job is lost
	if err := os.Mkdir(filepath.Join(dir, "pacer-other-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	after := newRemote(t, dir, c)
	found, err := after.UnderWay(t.Context(), open)
	if err != nil || len(found) != 2 || found[0] != open[0] || found[1] != open[1] {
		t.Errorf("under way are %v, %v", found, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("left are %v, want two points and another run", left)
	}
	n := len(c.submitted)
	if m, err := after.Run(t.Context(), open[0]); err != nil || m.Outcome != spec.OK || len(c.submitted) != n {
		t.Errorf("the result is measured again: %+v, %v", m, err)
	}
}

// TestRemoteKeys: runs of the same name in two directories have jobs of their own, since one never sees the results of the
// other. A later process has the keys of the one before, however it writes the directory.
func TestRemoteKeys(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	t.Chdir(a)
	one, two, again := newRemote(t, a, &jobs{}), newRemote(t, b, &jobs{}), newRemote(t, ".", &jobs{})
	x := remoteConfig(1)
	if one.key(x) == two.key(x) {
		t.Errorf("the key of both directories is %s", one.key(x))
	}
	if one.key(x) != again.key(x) {
		t.Errorf("key %s, later %s", one.key(x), again.key(x))
	}
	if one.key(x) == one.key(remoteConfig(2)) {
		t.Errorf("two points have the key %s", one.key(x))
	}
}
