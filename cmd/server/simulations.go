package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/access"
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

// simulation is one that the server keeps. Its state changes under the lock of simulations.
type simulation struct {
	state    Simulation
	run      *experiment.Simulation // nil once it has ended
	explain  *report.Explanations   // nil = no job
	finished atomic.Int64
	cancel   context.CancelFunc
	html     []byte // its report
	charts   []byte // the data of the report's charts, JSON
}

// simulations keeps the last simulations and runs them one at a time.
type simulations struct {
	s     *Server
	turn  chan struct{} // held by the one that runs
	ctx   context.Context
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu   sync.Mutex
	all  []*simulation // oldest first
	last int           // number of the newest
}

func newSimulations(s *Server) *simulations {
	m := &simulations{s: s, turn: make(chan struct{}, 1)}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// close cancels all simulations and waits until none runs.
func (m *simulations) close() {
	m.stop()
	m.ended.Wait()
}

// simulationID selects a simulation by the path of a request.
type simulationID struct {
	ID string `path:"id" maxLength:"16"`
}

func (s *Server) registerSimulations(api huma.API, m *router) {
	const tag, path, one = "simulations", "/v1/simulations", "/v1/simulations/{id}"
	m.scopes["POST "+path], m.scopes["DELETE "+one] = access.ScopeFit, access.ScopeFit
	register(s, api, m, operation{http.MethodPost, path, "simulate", tag, light, "Simulate scheduling policies",
		fmt.Sprintf("As pacer simulate. The answer comes at once, and the simulation runs when those before it have ended. The last %d are kept.", maxSimulations), []int{404}},
		func(ctx context.Context, in *body[SimulationRequest]) (Simulation, error) {
			return s.simulations.add(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodGet, path, "simulations", tag, light, "Simulations", "The newest first, without figures.", nil},
		func(context.Context, *struct{}) (Simulations, error) { return s.simulations.list(), nil })
	register(s, api, m, operation{http.MethodGet, one, "simulation", tag, light, "One simulation", "Its progress, and its figures once it is done.", []int{404}},
		func(_ context.Context, in *simulationID) (Simulation, error) { return s.simulations.get(in.ID) })
	register(s, api, m, operation{http.MethodDelete, one, "delete-simulation", tag, light, "Delete a simulation", "One that has not ended is cancelled.", []int{404}},
		func(_ context.Context, in *simulationID) (Simulation, error) { return s.simulations.remove(in.ID) })
	m.HandleFunc("GET "+one+"/charts", func(w http.ResponseWriter, r *http.Request) {
		_, charts, err := s.simulations.report(r.PathValue("id"))
		if err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(charts)
	})
	m.HandleFunc("GET "+one+"/report", func(w http.ResponseWriter, r *http.Request) {
		html, _, err := s.simulations.report(r.PathValue("id"))
		if err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", inlinePolicy(html))
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(html)
	})
}

// add starts a simulation, or reports what is wrong with it.
func (m *simulations) add(ctx context.Context, in *SimulationRequest) (Simulation, error) {
	run, warnings, err := m.read(ctx, in)
	if err != nil {
		return Simulation{}, err
	}
	n := &simulation{run: run, state: Simulation{Status: "waiting", Workload: cmp.Or(in.Workload, "a CSV file"), Cluster: in.Cluster, Policies: in.Policies, Jobs: len(run.Jobs), Warnings: warnings, Created: time.Now().UTC()}}
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
	if len(m.all) >= maxSimulations {
		i := slices.IndexFunc(m.all, func(n *simulation) bool { return n.run == nil })
		if i < 0 {
			return Simulation{}, m.s.busy("simulations", 10*time.Second, fmt.Sprintf("%d simulations wait", len(m.all)))
		}
		m.all = slices.Delete(m.all, i, i+1)
	}
	m.last++
	n.state.ID = strconv.Itoa(m.last)
	m.all = append(m.all, n)
	var ended context.Context
	ended, n.cancel = context.WithTimeoutCause(m.ctx, m.s.o.FitTimeout, fmt.Errorf("ended after %v", m.s.o.FitTimeout))
	m.ended.Go(func() { m.simulate(ended, n, run) })
	return n.state, nil
}

// simulate runs n after those before it, and keeps its figures.
func (m *simulations) simulate(ctx context.Context, n *simulation, run *experiment.Simulation) {
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

// drawn is how a simulation is shown: its report, and the data of the report's charts.
type drawn struct{ html, charts []byte }

// turnOf waits for the simulations before n, runs it and writes its report. A panic is an error.
func (m *simulations) turnOf(ctx context.Context, n *simulation, run *experiment.Simulation) (results []*sim.Result, drawn drawn, err error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, drawn, context.Cause(ctx)
	}
	m.mu.Lock()
	n.state.Status = "running"
	m.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			m.s.metrics.panics.Inc()
			m.s.o.Log.Error("panic", "simulation", n.state.ID, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
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
		Score: run.Score, Facts: append(run.Facts(), report.Fact{Name: "Pacer", Value: m.s.o.Version})}
	if err = report.WriteHTML(&html, in); err == nil {
		err = report.WriteCharts(&charts, in)
	}
	drawn.html, drawn.charts = html.Bytes(), charts.Bytes()
	return results, drawn, err
}

// find returns a kept simulation. The caller holds mu.
func (m *simulations) find(id string) (int, error) {
	i := slices.IndexFunc(m.all, func(n *simulation) bool { return n.state.ID == id })
	if i < 0 {
		return 0, problem.New(http.StatusNotFound, answer.TypeUnknownName, fmt.Sprintf("no simulation %q: /v1/simulations lists the last %d", id, maxSimulations))
	}
	return i, nil
}

// now is the state of a simulation. The caller holds mu.
func (n *simulation) now() Simulation {
	out := n.state
	out.Finished = int(n.finished.Load())
	return out
}

func (m *simulations) list() (out Simulations) {
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

func (m *simulations) get(id string) (Simulation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.find(id)
	if err != nil {
		return Simulation{}, err
	}
	return m.all[i].now(), nil
}

func (m *simulations) remove(id string) (Simulation, error) {
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

// report returns the page of a simulation that is done, and the data of its charts.
func (m *simulations) report(id string) (html, charts []byte, err error) {
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

// inlined is a script or a style sheet within a page.
var inlined = regexp.MustCompile(`(?s)<(script|style)[^>]*>(.*?)</(?:script|style)>`)

// inlinePolicy is the content security policy of a page that is one file: it runs and shows what it has, and nothing
// else, as a document of no origin.
func inlinePolicy(html []byte) string {
	sources := map[string]string{}
	for _, m := range inlined.FindAllSubmatch(html, -1) {
		sum := sha256.Sum256(m[2])
		sources[string(m[1])] += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src" + sources["script"] + "; style-src" + sources["style"] + "; img-src data:; base-uri 'none'; form-action 'none'; sandbox allow-scripts"
}
