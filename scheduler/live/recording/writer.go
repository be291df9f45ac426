package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

const (
	heartbeat  = 10 * time.Minute // longest time between two lines
	retryAfter = time.Minute      // from a failed write to the next session line
	queued     = 256              // lines that wait to be written
)

// Writer appends a recording to a file. Observe and Close may not be called concurrently. Lines
// are written by a goroutine, so that a slow disk does not delay the controller. A line that
// cannot be written is reported, and all state is written again later.
type Writer struct {
	session Session
	file    *os.File
	warn    func(error)
	lines   chan []byte
	done    chan struct{}
	broken  atomic.Bool // a line is missing in the file

	fresh  bool      // the next line begins a session
	retry  time.Time // not before, if fresh
	last   time.Time // of the last line
	seen   time.Time // of the last observation
	types  map[spec.NodeGroup]int
	models map[spec.Model]int
	nodes  map[string]node
	jobs   map[spec.JobID]live.Job
}

// NewWriter returns a writer that appends to a file open for reading and appending, which no
// other process writes. Close closes the file. warn receives errors of writing; it may be
// called by another goroutine. The error says that the file holds something other than a
// recording of this version.
func NewWriter(f *os.File, s Session, warn func(error)) (*Writer, error) {
	torn, err := checkFile(f)
	if err != nil {
		return nil, err
	}
	w := &Writer{session: s, file: f, warn: warn, lines: make(chan []byte, queued), done: make(chan struct{}), fresh: true}
	go w.write(torn)
	return w, nil
}

// checkFile reports whether the last line of a recording is torn.
func checkFile(f *os.File) (torn bool, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("recording: %s is not a regular file", f.Name())
	}
	first, err := bufio.NewReader(io.NewSectionReader(f, 0, maxLine)).ReadBytes('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	if _, err := parseLine(first, true); err != nil && !isTorn(err) {
		return false, fmt.Errorf("recording: %s:1: %w", f.Name(), err)
	}
	end := make([]byte, 1)
	_, err = f.ReadAt(end, info.Size()-1)
	return end[0] != '\n', err
}

// Observe records an observation of a controller.
func (w *Writer) Observe(at time.Time, s *live.State) {
	if w.broken.Swap(false) {
		w.fresh, w.retry = true, at.Add(retryAfter)
	}
	if w.fresh && at.Before(w.retry) {
		return
	}
	l := line{At: at.UTC()}
	if w.fresh {
		l.Version, l.Session = Version, w.session
		l.Even = s.Even
		w.types, w.models = map[spec.NodeGroup]int{}, map[spec.Model]int{}
		w.nodes, w.jobs = map[string]node{}, map[spec.JobID]live.Job{}
	}
	if again := w.again(s); len(again) > 0 && !w.fresh {
		w.addEnded(&l, again, s.Cancelled)
		w.send(&l)
		l = line{At: l.At}
	}
	w.addNodes(&l, s)
	w.addJobs(&l, s)
	if w.fresh || len(l.Nodes)+len(l.NodesGone)+len(l.Jobs)+len(l.Ended) > 0 || at.Sub(w.last) >= heartbeat {
		w.fresh = false
		w.send(&l)
	}
	w.seen = at
}

// addNodes adds new, changed and gone nodes.
func (w *Writer) addNodes(l *line, s *live.State) {
	for i := range s.Nodes {
		o := &s.Nodes[i]
		group := o.Type
		group.Count = 0
		kind, known := w.types[group]
		if !known {
			kind = len(w.types)
			w.types[group] = kind
			l.Types = append(l.Types, typeOf(&group))
		}
		n := node{o.Name, kind, o.Mode, o.UsedDevices, o.UsedHost.MilliCPUs, o.UsedHost.Bytes}
		if before, known := w.nodes[n.Name]; !known || before != n {
			w.nodes[n.Name] = n
			l.Nodes = append(l.Nodes, n)
		}
	}
	if len(w.nodes) == len(s.Nodes) {
		return
	}
	gone := maps.Clone(w.nodes)
	for i := range s.Nodes {
		delete(gone, s.Nodes[i].Name)
	}
	for name := range gone {
		delete(w.nodes, name)
	}
	l.NodesGone = slices.Sorted(maps.Keys(gone))
}

// addJobs adds new, changed and ended jobs. Those with an impossible request are left out.
func (w *Writer) addJobs(l *line, s *live.State) {
	here := make(map[spec.JobID]bool, len(s.Jobs))
	for i := range s.Jobs {
		o := &s.Jobs[i]
		if o.Phase == live.Ended || o.Spec.Validate() != nil {
			continue
		}
		here[o.Spec.ID] = true
		before, known := w.jobs[o.Spec.ID]
		w.jobs[o.Spec.ID] = *o
		sameRequest := known && sameRequest(&before, o)
		if sameRequest && sameState(&before, o) {
			continue
		}
		j := w.job(o)
		if !sameRequest {
			j.Request = requestOf(o, w.model(l, o.Spec.Model))
		}
		l.Jobs = append(l.Jobs, j)
	}
	if len(w.jobs) == len(here) {
		return
	}
	var gone []spec.JobID
	for id := range w.jobs {
		if !here[id] {
			gone = append(gone, id)
		}
	}
	w.addEnded(l, gone, s.Cancelled)
}

// again returns the jobs that ended since the last observation, with IDs that others have by now.
func (w *Writer) again(s *live.State) (out []spec.JobID) {
	for i := range s.Jobs {
		o := &s.Jobs[i]
		if before, known := w.jobs[o.Spec.ID]; known && before.UID != o.UID {
			out = append(out, o.Spec.ID)
		}
	}
	return out
}

// addEnded adds jobs that have ended.
func (w *Writer) addEnded(l *line, ids, cancelled []spec.JobID) {
	slices.Sort(ids)
	for _, id := range ids {
		if o := w.jobs[id]; o.Done > 0 {
			j := w.job(&o) // how far it came
			j.DoneAt = w.seen.UTC()
			l.Jobs = append(l.Jobs, j)
		}
		l.Ended = append(l.Ended, id)
		if slices.Contains(cancelled, id) {
			l.Cancelled = append(l.Cancelled, id)
		}
		delete(w.jobs, id)
	}
}

// model returns the number of a model.
func (w *Writer) model(l *line, m spec.Model) int {
	n, known := w.models[m]
	if !known {
		n = len(w.models)
		w.models[m] = n
		l.Models = append(l.Models, m)
	}
	return n
}

// job returns the state of a job. Devices on nodes that are not in the cluster are no state: the
// job has lost them.
func (w *Writer) job(o *live.Job) job {
	r := &o.Record
	j := job{
		ID: o.Spec.ID, Phase: o.Phase, Paused: o.Paused, Plan: r.Plan, Slots: r.Slots, RunPlan: r.RunPlan,
		Started: o.Started.UTC(), Restarts: r.Restarts, Failures: r.Failures,
	}
	if o.Phase == live.Running || o.Phase == live.Stopping {
		if j.Held = o.Slots; j.Held == nil {
			j.Held = r.RunSlots
		}
		for name := range j.Held {
			if _, known := w.nodes[name]; !known {
				j.Held = nil
				break
			}
		}
	}
	if o.Started.IsZero() {
		j.Started = time.Time{}
	}
	if o.Done >= 0 && !math.IsInf(o.Done, 1) {
		j.Done = &o.Done
	}
	return j
}

// sameRequest reports whether two observations of a job have one request.
func sameRequest(a, b *live.Job) bool {
	x, y := a.Spec, b.Spec
	x.Submit, y.Submit = 0, 0
	return x == y && a.Submitted.Equal(b.Submitted)
}

// sameState reports whether two observations of a job differ in its progress at most.
func sameState(a, b *live.Job) bool {
	r, s := &a.Record, &b.Record
	return a.Phase == b.Phase && a.Paused == b.Paused && a.Started.Equal(b.Started) && maps.Equal(a.Slots, b.Slots) &&
		r.Generation == s.Generation && r.RunGeneration == s.RunGeneration && r.Plan == s.Plan && r.RunPlan == s.RunPlan &&
		maps.Equal(r.Slots, s.Slots) && maps.Equal(r.RunSlots, s.RunSlots) && r.Restarts == s.Restarts && r.Failures == s.Failures
}

// send queues a line. If too many wait, all state is sent later.
func (w *Writer) send(l *line) {
	text, err := json.Marshal(l)
	if err != nil {
		w.fail(fmt.Errorf("recording: %w", err))
		return
	}
	w.last = l.At
	select {
	case w.lines <- append(text, '\n'):
	default:
		w.fail(errors.New("recording: the disk is too slow, a line is left out"))
	}
}

func (w *Writer) fail(err error) {
	w.broken.Store(true)
	w.warn(err)
}

// write writes the lines. torn says that the last one in the file is.
func (w *Writer) write(torn bool) {
	defer close(w.done)
	failed := false // until a session begins
	for text := range w.lines {
		if failed = failed && !bytes.HasPrefix(text, []byte(beginning)); failed {
			continue
		}
		if torn {
			text = append([]byte{'\n'}, text...)
		}
		n, err := w.file.Write(text)
		if torn = torn && n == 0 || n > 0 && n < len(text); err != nil {
			failed = true
			w.fail(fmt.Errorf("recording: %w", err))
		}
	}
}

// Close writes the progress of jobs and closes the file. The errors are those of closing.
func (w *Writer) Close(at time.Time) error {
	l := line{At: at.UTC()}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if o := w.jobs[id]; o.Phase == live.Running && o.Done >= 0 {
			l.Jobs = append(l.Jobs, w.job(&o))
		}
	}
	if !w.fresh && !w.broken.Load() {
		w.send(&l)
	}
	close(w.lines)
	<-w.done
	return errors.Join(w.file.Sync(), w.file.Close())
}
