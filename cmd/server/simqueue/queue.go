package simqueue

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Simulation is the state of a simulation, and its figures once it is done.
type Simulation struct {
	ID       string           `json:"id"`
	Status   string           `json:"status" enum:"waiting,running,done,failed,cancelled"`
	Workload string           `json:"workload"`
	Cluster  string           `json:"cluster"`
	Policies []string         `json:"policies"`
	Jobs     int              `json:"jobs"`
	Finished int              `json:"finished" doc:"Jobs that have finished, of jobs times policies."`
	Created  time.Time        `json:"created"`
	Runs     []report.Summary `json:"runs,omitempty" doc:"A row per policy, as pacer simulate."`
	Events   []SimulatedEvent `json:"events,omitempty" doc:"Those of the explained jobs, by policy."`
	Report   string           `json:"report,omitempty" doc:"Path of the report: charts, the jobs on every device, and fairness, as a page."`
	Charts   string           `json:"charts,omitempty" doc:"Path of the data of the report's charts, as JSON."`
	Warnings []string         `json:"warnings,omitempty" doc:"Rows of jobs that are not used, and what else stops nothing."`
	Error    string           `json:"error,omitempty"`
}

// SimulatedEvent is something that happens to an explained job, with fields of a file of events.
type SimulatedEvent struct {
	Policy  string  `json:"policy"`
	AtSec   float64 `json:"at_s"`
	Event   string  `json:"event" example:"started"`
	JobID   string  `json:"job_id"`
	Devices int     `json:"devices,omitempty"`
	Slots   string  `json:"slots,omitempty" doc:"Devices as node:devices."`
	Plan    string  `json:"plan,omitempty"`
	Why     string  `json:"why,omitempty"`
}

// Simulations are the kept ones, the newest first.
type Simulations struct {
	Simulations []Simulation `json:"simulations"`
}

// simulation is one that the server keeps. Its state changes under the lock of Queue.
type simulation struct {
	state    Simulation
	once     Once
	run      *experiment.Simulation // nil once it has ended
	explain  *report.Explanations   // nil = no job
	finished atomic.Int64
	cancel   context.CancelFunc
	html     []byte // its report
	charts   []byte // the data of the report's charts, JSON
}

// Options are what a Queue needs of its server.
type Options struct {
	Resolver *query.Resolver
	Timeout  time.Duration                            // of one simulation
	Version  string                                   // of Pacer, in reports
	Panicked func(id string, value any, stack []byte) // is called with a panic of a simulation
	After    int                                      // IDs count from the next number on
}

// ErrFull refuses a simulation, since as many wait as are kept.
var ErrFull = fmt.Errorf("%d simulations wait", MaxSimulations)

// Queue keeps the last simulations and runs them one at a time.
type Queue struct {
	o     Options
	turn  chan struct{} // held by the one that runs
	ctx   context.Context
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu   sync.Mutex
	all  []*simulation // oldest first
	last int           // number of the newest
}

// New returns a queue without simulations.
func New(o *Options) *Queue {
	m := &Queue{o: *o, turn: make(chan struct{}, 1), last: o.After}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// Close cancels all simulations and waits until none runs.
func (m *Queue) Close() {
	m.stop()
	m.ended.Wait()
}

// Once says that a request may be repeated. The zero value has no key: each request is another one.
type Once struct {
	Client, Key string
	Sum         [sha256.Size]byte // of the body
}

// Add starts a simulation, or reports what is wrong with it. Where it keeps one of the same client and key, it returns that.
func (m *Queue) Add(ctx context.Context, in *SimulationRequest, once Once) (Simulation, error) {
	run, warnings, err := m.read(ctx, in)
	if err != nil {
		return Simulation{}, err
	}
	n := &simulation{run: run, once: once, state: Simulation{Status: "waiting", Workload: cmp.Or(in.Workload, "a CSV file"), Cluster: in.Cluster, Policies: in.Policies, Jobs: len(run.Jobs), Warnings: warnings, Created: time.Now().UTC()}}
	for _, id := range in.Explain {
		if !slices.ContainsFunc(run.Jobs, func(j spec.Job) bool { return j.ID == spec.JobID(id) }) {
			return Simulation{}, &query.FieldError{Field: "explain", Value: id, Why: fmt.Sprintf("is no job; the first is %q", run.Jobs[0].ID)}
		}
		if n.explain == nil {
			n.explain = &report.Explanations{}
		}
		n.explain.Jobs = append(n.explain.Jobs, spec.JobID(id))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, kept := range m.all {
		switch {
		case once.Key == "" || kept.once.Client != once.Client || kept.once.Key != once.Key:
		case kept.once.Sum != once.Sum:
			return Simulation{}, problem.KeyOfAnother(once.Key)
		default:
			return kept.now(), nil
		}
	}
	if len(m.all) >= MaxSimulations {
		i := slices.IndexFunc(m.all, func(n *simulation) bool { return n.run == nil })
		if i < 0 {
			return Simulation{}, ErrFull
		}
		m.all = slices.Delete(m.all, i, i+1)
	}
	m.last++
	n.state.ID = strconv.Itoa(m.last)
	m.all = append(m.all, n)
	var ended context.Context
	ended, n.cancel = context.WithCancel(m.ctx)
	m.ended.Go(func() { m.simulate(ended, n, run) })
	return n.state, nil
}

// simulate runs n after those before it, and keeps its figures.
func (m *Queue) simulate(ctx context.Context, n *simulation, run *experiment.Simulation) {
	defer n.cancel()
	results, drawn, err := m.turnOf(ctx, n, run)
	var events []SimulatedEvent
	if err == nil && n.explain != nil {
		var text []byte
		if text, err = json.Marshal(n.explain); err == nil {
			err = json.Unmarshal(text, &events)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n.run = nil
	switch {
	case err == nil:
		n.state.Status, n.state.Runs, n.state.Events, n.html = "done", report.SummarizeAll(results, run.Score), events, drawn.html
		n.charts = drawn.charts
		n.state.Report, n.state.Charts = "/v1/simulations/"+n.state.ID+"/report", "/v1/simulations/"+n.state.ID+"/charts"
	case errors.Is(err, context.Canceled):
		n.state.Status = "cancelled"
	default:
		n.state.Status, n.state.Error = "failed", err.Error()
	}
}

// Turn waits until no simulation runs. None starts until done is called.
func (m *Queue) Turn(ctx context.Context) (done func(), err error) {
	select {
	case m.turn <- struct{}{}:
		return func() { <-m.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// drawn is how a simulation is shown: its report, and the data of the report's charts.
type drawn struct{ html, charts []byte }

// turnOf waits for the simulations before n, runs it and writes its report. A panic is an error.
func (m *Queue) turnOf(ctx context.Context, n *simulation, run *experiment.Simulation) (results []*sim.Result, drawn drawn, err error) {
	done, err := m.Turn(ctx)
	if err != nil {
		return nil, drawn, err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, m.o.Timeout, fmt.Errorf("ended after %v", m.o.Timeout))
	defer cancel()
	m.mu.Lock()
	n.state.Status = "running"
	m.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			m.o.Panicked(n.state.ID, v, debug.Stack())
			err = errors.New("an internal error, which was logged")
		}
	}()
	var gantt *report.Gantt // of the present run
	var gantts []*report.Gantt
	results, err = run.Run(ctx, experiment.Hooks{
		Explain:  n.explain,
		Finished: func() { n.finished.Add(1) },
		Observe: func(c sim.Config) func(sim.Event) {
			gantt = report.NewGantt(c.Cluster)
			return gantt.Observe
		},
		Done: func(r *sim.Result) {
			if r.Failed != "" {
				gantt = nil
			} else {
				gantt.End(report.RunEnd(r))
			}
			gantts = append(gantts, gantt)
		},
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, drawn, err
	}
	var html, charts bytes.Buffer
	in := report.HTMLInput{Title: fmt.Sprintf("%d jobs on %d devices", len(run.Jobs), run.Cluster.Devices()), Results: results, Gantts: gantts,
		Score: run.Score, Facts: append(run.Facts(), report.Fact{Name: "Pacer", Value: m.o.Version})}
	if err = report.WriteHTML(&html, in); err == nil {
		err = report.WriteCharts(&charts, in)
	}
	drawn.html, drawn.charts = html.Bytes(), charts.Bytes()
	return results, drawn, err
}

// find returns a kept simulation. The caller holds mu.
func (m *Queue) find(id string) (int, error) {
	i := slices.IndexFunc(m.all, func(n *simulation) bool { return n.state.ID == id })
	if i < 0 {
		return 0, problem.New(http.StatusNotFound, answer.TypeUnknownName, fmt.Sprintf("no simulation %q: /v1/simulations lists the last %d", id, MaxSimulations))
	}
	return i, nil
}

// now is the state of a simulation. The caller holds mu.
func (n *simulation) now() Simulation {
	out := n.state
	out.Finished = int(n.finished.Load())
	return out
}

// List returns the kept simulations, without figures.
func (m *Queue) List() (out Simulations) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out.Simulations = []Simulation{}
	for _, n := range slices.Backward(m.all) {
		state := n.now()
		state.Runs, state.Events = nil, nil
		out.Simulations = append(out.Simulations, state)
	}
	return out
}

// Get returns a simulation.
func (m *Queue) Get(id string) (Simulation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(id)
	if err != nil {
		return Simulation{}, err
	}
	return m.all[i].now(), nil
}

// Remove cancels a simulation and keeps it no longer.
func (m *Queue) Remove(id string) (Simulation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(id)
	if err != nil {
		return Simulation{}, err
	}
	n := m.all[i]
	n.cancel()
	m.all = slices.Delete(m.all, i, i+1)
	return n.now(), nil
}

// Report returns the page of a simulation that is done, and the data of its charts.
func (m *Queue) Report(id string) (html, charts []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(id)
	if err == nil && m.all[i].html == nil {
		err = problem.New(http.StatusNotFound, "", fmt.Sprintf("simulation %s is %s: there is no report", id, m.all[i].state.Status))
	}
	if err != nil {
		return nil, nil, err
	}
	return m.all[i].html, m.all[i].charts, nil
}
