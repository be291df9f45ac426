package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// testWriter returns a writer to a file, and the number of its warnings. Its goroutine does not run.
func testWriter(t testing.TB) (w *Writer, warned *atomic.Int32) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.jsonl")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	warned = &atomic.Int32{}
	warn := func(error) { warned.Add(1) }
	return &Writer{file: f, warn: warn, lines: make(chan []byte, queued), done: make(chan struct{}), fresh: true}, warned
}

// bigState is a cluster of nodes and jobs. Every fifth job runs.
func bigState(nodes, jobs int) *live.State {
	s := &live.State{}
	for i := range nodes {
		s.Nodes = append(s.Nodes, live.Node{Name: fmt.Sprintf("node%d", i), Type: spec.NodeGroup{Devices: 8, Accelerator: spec.Accelerator{Name: "x"}}})
	}
	plan := spec.Plan{DP: 4, TP: 2, MicroBatch: 2}
	for i := range jobs {
		j := live.Job{Spec: spec.Job{ID: spec.JobID(fmt.Sprint(100000 + i)), Model: spec.Model{Name: "m"}, Plan: plan, Devices: 8, Steps: 1000}, Submitted: start}
		if i%5 == 0 {
			slots := live.Slots{s.Nodes[i/5].Name: 8}
			j.Phase, j.Slots, j.Started = live.Running, slots, start
			j.Record = live.Record{Generation: 1, Plan: plan.String(), Slots: slots, RunGeneration: 1, RunPlan: plan.String(), RunSlots: slots}
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func readFile(t testing.TB, w *Writer) *Recording {
	t.Helper()
	f, err := os.Open(w.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Read(f, "f", Window{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFailedWrite: after a write that failed nothing more is written until all state is, a minute later.
func TestFailedWrite(t *testing.T) {
	w, warned := testWriter(t)
	good := w.file
	var err error
	if w.file, err = os.Open(good.Name()); err != nil { // for reading only
		t.Fatal(err)
	}
	defer w.file.Close()
	go w.write(true)
	s := bigState(1, 3)
	w.Observe(start, s)
	for !w.broken.Load() {
		runtime.Gosched()
	}
	w.file = good
	s.Jobs = s.Jobs[:2]
	w.Observe(start.Add(time.Second), s)
	s.Jobs = s.Jobs[:1]
	w.Observe(start.Add(2*time.Minute), s)
	s.Jobs = nil
	w.Observe(start.Add(3*time.Minute), s)
	if err := w.Close(start.Add(4 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if r := readFile(t, w); r.Sessions != 1 || r.Torn != 0 || len(r.Jobs) != 1 || r.Jobs[0].Runs[0].End != 3*time.Minute || warned.Load() != 1 {
		t.Errorf("%d warnings, %+v", warned.Load(), r)
	}
}

// TestSlowDisk: the controller never waits for the disk, and what is left out is written later.
func TestSlowDisk(t *testing.T) {
	w, warned := testWriter(t)
	s := bigState(1, 2)
	for i := range queued + 50 { // nothing is written
		s.Jobs[1].Record.Failures = i
		w.Observe(start.Add(time.Duration(i)*time.Second), s)
	}
	if warned.Load() != 1 {
		t.Errorf("%d warnings", warned.Load())
	}
	go w.write(false)
	for len(w.lines) > 0 {
		runtime.Gosched()
	}
	s.Jobs = s.Jobs[:1]
	w.Observe(start.Add(time.Hour), s)
	if err := w.Close(start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if r := readFile(t, w); r.Sessions != 2 || r.Torn != 0 || len(r.Jobs) != 1 || len(r.LeftOut) != 1 {
		t.Errorf("%+v", r)
	}
}

// BenchmarkObserve observes 5000 jobs on 1000 nodes. Some jobs change each time. change-bytes is the size of a change,
// session-bytes that of the first line.
func BenchmarkObserve(b *testing.B) {
	for _, changes := range []int{0, 20} {
		b.Run(fmt.Sprintf("changes=%d", changes), func(b *testing.B) {
			w, _ := testWriter(b)
			sizes, n := 0, 0
			s := bigState(1000, 5000)
			w.Observe(start, s)
			session := len(<-w.lines)
			for i := 0; b.Loop(); i++ {
				for k := range changes {
					s.Jobs[(i+k)%len(s.Jobs)].Record.Failures++
				}
				w.Observe(start.Add(time.Second), s)
				select {
				case l := <-w.lines:
					sizes += len(l)
					n++
				default:
				}
			}
			b.ReportMetric(float64(session), "session-bytes")
			if n > 0 {
				b.ReportMetric(float64(sizes)/float64(n*changes), "change-bytes")
			}
		})
	}
}
