package recording

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// state is what the lines read so far say.
type state struct {
	out    Recording
	types  []spec.NodeGroup // of the session
	models []spec.Model     // of the session
	window Window
	began  time.Time // the first line
	from   time.Time // that, or the beginning of the window
	now    time.Time
	over   bool          // the window
	cost   time.Duration // start cost of the session

	nodes []*nodeState
	names map[string]*nodeState // present nodes
	jobs  map[spec.JobID]*jobState
}

// jobState is a job.
type jobState struct {
	out       Job // as far as it is known
	last      job // as seen last
	submitted time.Time
	runs      []runState
	ended     time.Time // zero = it has not
	cancelled bool      // then
	done      float64   // steps as reported last, negative = never
	seen      time.Time // when that was
	first     job       // as seen first
}

// runState is a run. It is under way if end is zero.
type runState struct {
	start, end, started time.Time // started as the cluster says
	cost                time.Duration
	plan                string
	slots               live.Slots
}

func newState(w Window) *state {
	return &state{window: w, names: map[string]*nodeState{}, jobs: map[spec.JobID]*jobState{}}
}

// add takes a line over.
func (s *state) add(l *line) error {
	at := l.At
	if s.began.IsZero() {
		s.began, s.from, s.now = at, at, at
	}
	if begin := s.began.Add(s.window.From); s.from.Before(begin) && !at.Before(begin) {
		s.advance(begin)
		s.cut()
	}
	if end := s.began.Add(s.window.To); s.window.To > 0 && !at.Before(end) && !s.over {
		s.advance(end)
		s.over = true
	}
	if s.over {
		return nil
	}
	last := s.now
	s.advance(at)
	if l.Version > 0 {
		s.begin(l, s.now.Sub(last))
	}
	for i := range l.Types {
		g := l.Types[i].group()
		one := g
		one.Count = 1
		if err := (spec.Cluster{Groups: []spec.NodeGroup{one}}).Validate(); err != nil {
			return fmt.Errorf("type %d: %w", len(s.types), err)
		}
		s.types = append(s.types, g)
	}
	s.models = append(s.models, l.Models...)
	for i := range l.Nodes {
		if err := s.addNode(&l.Nodes[i]); err != nil {
			return err
		}
	}
	for _, name := range l.NodesGone {
		n := s.names[name]
		if n == nil {
			return fmt.Errorf("nodes_gone %q: no such node", name)
		}
		s.gone(n)
	}
	for i := range l.Jobs {
		if err := s.addJob(&l.Jobs[i]); err != nil {
			return err
		}
	}
	for _, id := range l.Ended {
		j := s.jobs[id]
		if j == nil {
			return fmt.Errorf("ended %q: no such job", id)
		}
		s.end(j)
	}
	for _, id := range l.Cancelled {
		j := s.jobs[id]
		if j == nil || j.ended.IsZero() {
			return fmt.Errorf("cancelled %q: no such job has ended", id)
		}
		j.cancelled = true
	}
	return nil
}

// advance brings the state to a time. Lines written by a machine with another clock do not turn it
// back.
func (s *state) advance(at time.Time) {
	if !at.After(s.now) {
		return
	}
	for _, n := range s.nodes {
		s.out.Others += float64(n.UsedDevices) * at.Sub(s.now).Seconds()
	}
	s.now = at
}

// cut forgets what was before now.
func (s *state) cut() {
	s.from = s.now
	s.out = Recording{Torn: s.out.Torn, Sessions: 1, Policies: []string{s.out.Last.Policy}, Last: s.out.Last}
	s.nodes = slices.DeleteFunc(s.nodes, func(n *nodeState) bool { return s.names[n.name] != n })
	for _, n := range s.nodes {
		n.outages, n.used = []outage{{}}, nil
		if n.Mode != live.Down {
			n.outages[0].up = s.now
		}
		s.use(n)
	}
	for id, j := range s.jobs {
		if !j.ended.IsZero() {
			delete(s.jobs, id)
			continue
		}
		j.first, j.out.Preemptions = j.last, 0
		if n := len(j.runs); n > 0 {
			j.runs = slices.DeleteFunc(j.runs[n-1:], func(r runState) bool { return !r.end.IsZero() })
		}
		for i := range j.runs {
			j.runs[i].cut(s.now)
		}
	}
}

// cut lets a run begin at a time, if it began earlier.
func (r *runState) cut(from time.Time) {
	if early := from.Sub(r.start); early > 0 {
		r.start, r.cost = from, max(r.cost-early, 0)
	}
}

// begin begins a session, after a time without one.
func (s *state) begin(l *line, away time.Duration) {
	if s.out.Sessions > 0 {
		s.out.Away += away
	}
	s.out.Sessions++
	even := s.out.Last.Even || l.Even
	s.out.Last, s.cost = l.Session, seconds(min(max(l.StartSec, 0), maxSec))
	s.out.Last.Even = even
	if !slices.Contains(s.out.Policies, l.Policy) {
		s.out.Policies = append(s.out.Policies, l.Policy)
	}
	s.types, s.models = nil, nil
	here := map[string]bool{}
	for i := range l.Nodes {
		here[l.Nodes[i].Name] = true
	}
	for name, n := range s.names {
		if !here[name] {
			s.gone(n)
		}
	}
	jobs := map[spec.JobID]bool{}
	for i := range l.Jobs {
		jobs[l.Jobs[i].ID] = true
	}
	for id, j := range s.jobs {
		if !jobs[id] && j.ended.IsZero() {
			s.end(j)
		}
	}
}

// addJob takes the state of a job over.
func (s *state) addJob(o *job) error {
	j := s.jobs[o.ID]
	if o.ID == "" || j == nil && o.Request == nil {
		return fmt.Errorf("job %q has no id or no request", o.ID)
	}
	if j != nil && !j.ended.IsZero() && o.Request != nil && !o.Request.Submitted.Equal(j.submitted) { // another with its id
		s.rename(o.ID, j)
		j = nil
	}
	if j == nil {
		j = &jobState{first: *o, submitted: s.now, done: -1}
		s.jobs[o.ID] = j
	}
	if err := s.setRequest(j, o); err != nil {
		return err
	}
	if o.Done != nil {
		if !(*o.Done >= 0) {
			return fmt.Errorf("job %q: done %g, want at least 0", o.ID, *o.Done)
		}
		j.done, j.seen = *o.Done, s.now
		if at := o.DoneAt; at.After(s.from) && at.Before(s.now) {
			j.seen = at
		}
	}
	if o.RunPlan != "" {
		if _, err := spec.ParsePlan(o.RunPlan); err != nil {
			return fmt.Errorf("job %q: run_plan: %w", o.ID, err)
		}
	}
	held := make(live.Slots, len(o.Held))
	for name, devices := range o.Held {
		n := s.names[name]
		if n == nil {
			return fmt.Errorf("job %q: held %q: no node %q", o.ID, o.Held, name)
		}
		held[n.Name] = devices
	}
	j.last, j.ended, j.cancelled = *o, time.Time{}, false
	s.run(j, held)
	return nil
}

// rename gives a job that has ended a name of its own.
func (s *state) rename(id spec.JobID, j *jobState) {
	for n := 1; ; n++ {
		unique := spec.JobID(fmt.Sprintf("%s#%d", id, n))
		if s.jobs[unique] == nil {
			j.out.ID = unique
			s.jobs[unique] = j
			delete(s.jobs, id)
			return
		}
	}
}

// setRequest takes the request of a job over, if it is new or changed.
func (s *state) setRequest(j *jobState, o *job) error {
	if o.Request == nil {
		return nil
	}
	request, err := o.Request.job(o.ID, s.models)
	if err == nil {
		err = request.Validate()
	}
	if err != nil {
		return err
	}
	if at := o.Request.Submitted; !at.IsZero() {
		if s.now.Sub(at) > maxSec*time.Second {
			return fmt.Errorf("job %q: submitted %q, a hundred years ago", o.ID, at.Format(time.RFC3339))
		}
		j.submitted = at
	}
	j.out.Job = request
	return nil
}

// run takes over what a job holds.
func (s *state) run(j *jobState, held live.Slots) {
	o := &j.last
	runs := o.RunPlan != "" && len(held) > 0
	var last *runState
	if n := len(j.runs); n > 0 {
		last = &j.runs[n-1]
	}
	if last != nil && last.end.IsZero() {
		if runs && last.plan == o.RunPlan && last.started.Equal(o.Started) && maps.Equal(last.slots, held) {
			return
		}
		last.end = s.now
		if runs && o.Started.After(last.start) && o.Started.Before(s.now) {
			last.end = o.Started
		}
		if !runs && o.Plan == "" {
			j.out.Preemptions++
		}
	}
	if !runs {
		return
	}
	r := runState{start: s.now, started: o.Started, cost: s.cost, plan: o.RunPlan, slots: held}
	if at := o.Started; !at.IsZero() && at.Before(r.start) {
		r.start = at
		r.cut(s.from)
		if last != nil && r.start.Before(last.end) {
			r.start = last.end
		}
	}
	j.runs = append(j.runs, r)
}

// end ends a job.
func (s *state) end(j *jobState) {
	j.ended = s.now
	if n := len(j.runs); n > 0 && j.runs[n-1].end.IsZero() {
		j.runs[n-1].end = s.now
	}
}
