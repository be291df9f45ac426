package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// counted counts its runs.
type counted struct {
	scheduler.Policy
	once *atomic.Int64
	used bool
}

func (p *counted) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if !p.used {
		p.used = true
		p.once.Add(1)
	}
	return p.Policy.Decide(ctx, s)
}

// testRunner runs two policies on a workload at two loads with five seeds.
func testRunner(t *testing.T, dir string, workers int) (*Runner, *atomic.Int64) {
	t.Helper()
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{
		Name: "tested", Workloads: []Workload{{Name: "w"}}, Loads: []float64{0.5, 0.9}, Seeds: []uint64{1, 2, 3, 4, 5}, Noise: 0.3,
		Schedulers: []Scheduler{{Name: "fifo"}, {Name: "fifo-backfill"}}, Arrivals: Poisson, Confidence: 0.95, Baseline: "fifo",
	}
	ran := &atomic.Int64{}
	cl := schedulertest.Nodes(2, 4)
	return &Runner{Study: s, Dir: d, Workers: workers, Setup: func(_ context.Context, c Cell) (Setup, error) {
		name := s.Schedulers[c.Scheduler].Name
		info, err := builtin.Policies.Lookup(name)
		if err != nil {
			return Setup{}, err
		}
		p, err := info.New(policy.Deps{})
		return Setup{Candidates: AsRequested(cl), Config: sim.Config{
			Cluster: cl, Jobs: mixedJobs(), Policy: &counted{Policy: p, once: ran}, PolicyName: name, Truth: sim.Durations{},
		}}, err
	}}, ran
}

func mixedJobs() []spec.Job {
	var out []spec.Job
	for i := range 60 {
		out = append(out, spec.Job{ID: spec.JobID(fmt.Sprint("j", i)), Submit: time.Duration(i) * time.Second,
			Devices: 1 + i*7%8, Duration: time.Duration(10+i*i%97) * time.Second})
	}
	return out
}

func rowsOf(t *testing.T, r *Runner) string {
	t.Helper()
	out, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r.Study.Rows(out))
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + r.Study.Table(r.Study.Rows(out)).String()
}

// TestRunnerIsDeterministic compares results of one worker and several, new and stored.
func TestRunnerIsDeterministic(t *testing.T) {
	dir := t.TempDir()
	one, _ := testRunner(t, t.TempDir(), 1)
	many, ran := testRunner(t, dir, 4)
	want := rowsOf(t, one)
	if diff := cmp.Diff(want, rowsOf(t, many)); diff != "" {
		t.Error(diff)
	}
	if n := ran.Load(); n != 20 {
		t.Errorf("%d runs, want 20", n)
	}
	kept, again := testRunner(t, dir, 2)
	if diff := cmp.Diff(want, rowsOf(t, kept)); diff != "" {
		t.Error(diff)
	}
	if n := again.Load(); n != 0 {
		t.Errorf("%d runs were repeated", n)
	}
	if !strings.Contains(want, `"vs_baseline":{"avg_jct":{"mean":0,"lo":0,"hi":0}`) {
		t.Errorf("the baseline differs from itself:\n%s", want)
	}
}

// TestRunnerGoesOn checks that an interrupted study does not repeat stored runs.
func TestRunnerGoesOn(t *testing.T) {
	dir := t.TempDir()
	first, ran := testRunner(t, dir, 2)
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	first.Progress = func(p Progress) {
		if done = p.Done; done == 7 {
			cancel()
		}
	}
	if _, err := first.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < done {
		t.Fatalf("%d files of %d runs, error %v", len(files), done, err)
	}
	rest, more := testRunner(t, dir, 2)
	rowsOf(t, rest)
	if got := int64(len(files)) + more.Load(); got != 20 {
		t.Errorf("%d kept and %d run afterwards, want 20 together", len(files), more.Load())
	}
	if ran.Load() > int64(len(files))+2 {
		t.Errorf("%d runs were begun for %d kept", ran.Load(), len(files))
	}
}

// TestRunnerFailures checks that a failed run is reported and not stored, while others
// continue, and that a study ends if it cannot store records.
func TestRunnerFailures(t *testing.T) {
	r, _ := testRunner(t, t.TempDir(), 2)
	sound := r.Setup
	r.Setup = func(ctx context.Context, c Cell) (Setup, error) {
		if c.Scheduler == 0 && c.Seed == 3 {
			return Setup{}, errors.New("no such thing")
		}
		return sound(ctx, c)
	}
	out, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := r.Study.Rows(out)
	if rows[0].Failed != 1 || rows[0].Seeds != 4 || rows[1].Failed != 0 || rows[1].Seeds != 5 || !rows[1].Baseline.AvgJCT.Lo.Defined() {
		t.Errorf("%+v", rows[:2])
	}
	gone, _ := testRunner(t, filepath.Join(t.TempDir(), "gone"), 2)
	if err := os.RemoveAll(gone.Dir.path); err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Run(t.Context()); !errors.Is(err, errKeep) {
		t.Errorf("nowhere to keep results: %v", err)
	}
}

func TestDir(t *testing.T) {
	path := t.TempDir()
	for name, age := range map[string]time.Duration{".a.json1234567890123456789": 2 * time.Hour, ".a.json.1.new": 2 * time.Hour, ".b.json2345678901234567890": 0} {
		file := filepath.Join(path, name)
		if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Chtimes(file, time.Time{}, time.Now().Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(path, ".*.json*")); len(left) != 1 || filepath.Base(left[0]) != ".b.json2345678901234567890" {
		t.Errorf("left: %v", left)
	}
	if _, ok, err := d.Get("k"); ok || err != nil {
		t.Errorf("nothing kept: %v, %v", ok, err)
	}
	put, err := d.Put(Record{Key: "k", Run: "r", Bounds: Bounds{Isolated: 1. / 3}})
	if err != nil {
		t.Fatal(err)
	}
	got, ok, err := d.Get("k")
	if !ok || err != nil || got.Bounds.Isolated != put.Bounds.Isolated || put.Bounds.Isolated != 0.333333333 {
		t.Errorf("put %+v, got %+v, %v, %v", put, got, ok, err)
	}
	whole := spectest.ReadFile(t, d.file("k"))
	for n := range len(whole) - 2 { // cut off anywhere
		spectest.WriteFile(t, d.file("k"), whole[:n], 0o644)
		if _, ok, err := d.Get("k"); ok || err != nil {
			t.Fatalf("cut at %d of %d: %v, %v", n, len(whole), ok, err)
		}
	}
}

// TestKey checks that every change of the inputs changes the key.
func TestKey(t *testing.T) {
	cl, jobs := schedulertest.Nodes(2, 4), mixedJobs()
	seen := map[string]string{}
	add := func(what string, cl spec.Cluster, jobs []spec.Job, words ...string) {
		k, err := keyOf(cl, jobs, words)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[k]; twice {
			t.Errorf("%s has the key of %s", what, other)
		}
		seen[k] = what
	}
	add("all", cl, jobs, "a", "b")
	add("words joined", cl, jobs, "ab")
	add("words turned", cl, jobs, "b", "a")
	add("fewer jobs", cl, jobs[1:], "a", "b")
	add("more nodes", schedulertest.Nodes(3, 4), jobs, "a", "b")
	later := mixedJobs()
	later[3].Submit++
	add("a job a nanosecond later", cl, later, "a", "b")
}
