package goodput

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/family/pollux"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Agents are the jobs of one run, which estimate their own speed. For every type of
// device it has run on, a job fits a model to the steps observed there. It chooses its
// batch by that model and reports it to the scheduler. Truth returns the progress of
// the jobs, Oracle the estimates for the policy. Use both in the same run only; they
// are not safe for concurrent use.
//
// Source: Jayaram Subramanya et al., Sia, SOSP 2023, sections 3.2 and 3.3, and its
// artifact siasosp23/artifacts at commit aaf7a0d, class Job.
type Agents struct {
	truth   *Truth
	rules   AgentRules
	cluster spec.Cluster
	jobs    map[spec.JobID]*agent
	pool    map[string]*history // by model; nil = each job has its own observations
	// Watch, if set, is called at the beginning of each round for every job that holds
	// devices.
	Watch func(now time.Duration, job spec.JobID, a AgentState)
}

// AgentState is the state of an agent at a time.
type AgentState struct {
	Batch    int     // samples per step
	Accum    int     // micro-batches per step
	Epoch    int     // from 0
	Progress float64 // steps at the initial batch
}

// AgentRules are the parts of agents in which simulators differ. The zero value is
// Pacer's own semantics.
type AgentRules struct {
	// MaxBatch returns the largest batch, in samples, that the scheduler expects of j.
	// largest is the largest that the application can train. nil = largest.
	MaxBatch func(j *spec.Job, largest int) int
	// RoundSec rounds the duration of an epoch in seconds, as sim.Rules.RoundSec does.
	RoundSec func(sec float64) float64
}

// NewAgents returns the agents of a run on t.
func NewAgents(t *Tables, cl spec.Cluster, r AgentRules) *Agents {
	return &Agents{truth: NewTruth(t, cl), rules: r, cluster: cl, jobs: map[spec.JobID]*agent{}}
}

// Pool makes all jobs of a model share their observations, as if the scheduler kept
// them: step times, and the noise of the first epoch. Call it before the run.
func (a *Agents) Pool() { a.pool = map[string]*history{} }

// history is the observations of the jobs of one model.
type history struct {
	types map[string]*observations
	first noise // noise of the first epoch; set before types is
}

// Truth returns the progress of the jobs.
func (a *Agents) Truth() sim.Tuner { return agentTruth{a.truth, a} }

// Oracle returns the estimates for the policy.
func (a *Agents) Oracle() scheduler.Elastic { return agentOracle{a} }

// agent is one job.
type agent struct {
	app      *app
	tables   *Tables
	training *training
	types    map[string]*observations // by accelerator
	noise    noise                    // noise of the last epoch trained, at the batch trained
	pool     *history                 // nil = not shared

	round func(sec float64) float64 // AgentRules.RoundSec
	on    tunedFor                  // where the batch was chosen
	micro int
	accum int
}

// tunedFor is an accelerator and the devices of a shape.
type tunedFor struct{ accelerator, devices string }

// observations is a job's observations on one type of device.
type observations struct {
	speeds *speeds
	steps  []pollux.ReplicaStep
	model  *pollux.ReplicaModel
}

// of returns the agent of j.
func (a *Agents) of(j *spec.Job) (*agent, error) {
	if out := a.jobs[j.ID]; out != nil {
		return out, nil
	}
	c, err := a.truth.trainingOf(j)
	if err != nil {
		return nil, err
	}
	out := &agent{app: a.truth.tables.apps[j.Model.Name], tables: a.truth.tables, training: c, types: map[string]*observations{}, round: a.rules.RoundSec}
	if a.pool != nil {
		out.join(a.pool)
	}
	a.jobs[j.ID] = out
	return out, nil
}

// join makes a share the history of its model.
func (a *agent) join(pool map[string]*history) {
	known := pool[a.app.name]
	if known == nil {
		known = &history{types: a.types}
		pool[a.app.name] = known
	}
	a.pool, a.types = known, known.types
}

// latestNoise returns the noise of the last epoch trained, or the shared one of the first
// epoch.
func (a *agent) latestNoise() noise {
	if a.pool != nil && a.noise == (noise{}) {
		return a.pool.first
	}
	return a.noise
}

// agentTruth is the truth about agents.
type agentTruth struct {
	*Truth
	agents *Agents
}

// Tune implements sim.Tuner: it returns the stages of a job in the round that ends at
// until, nil for a job that does not choose its batch.
func (t agentTruth) Tune(_ context.Context, now, until time.Duration, j *scheduler.JobState, group *spec.NodeGroup) ([]sim.Stage, error) {
	if !j.Grant.Elastic {
		return nil, nil
	}
	a, err := t.agents.of(j.Job)
	if err != nil {
		return nil, err
	}
	_, s, err := t.tables.lookup(j.Job.Model.Name, group.Accelerator.Name)
	if err != nil {
		return nil, err
	}
	shape := spec.Shape{Devices: j.Grant.Shape.Devices}
	if on := (tunedFor{group.Accelerator.Name, shape.Devices}); a.on != on {
		a.on = on
		a.tune(s, shape)
	}
	if t.agents.Watch != nil {
		t.agents.Watch(now, j.Job.ID, a.state(shape, j.Done))
	}
	return a.train(s, shape, j.Done, (until - max(now, j.Ready)).Seconds())
}

// state returns the state of a job after done steps.
func (a *agent) state(shape spec.Shape, done float64) AgentState {
	c := a.training
	out := AgentState{Batch: shape.Total() * a.micro * a.accum, Accum: a.accum, Epoch: c.epoch(done)}
	begin := 0.0
	if out.Epoch > 0 {
		begin, out.Progress = c.ends[out.Epoch-1], a.app.ends[out.Epoch-1]
	}
	out.Progress += (done - begin) * c.gains[out.Epoch]
	return out
}

// train returns the stages of a job in the next sec seconds, after done steps. The job
// observes a step at the beginning and at the begin of each epoch. It chooses its batch
// at the end and at the end of each epoch.
func (a *agent) train(s *speeds, shape spec.Shape, done, sec float64) (out []sim.Stage, err error) {
	for epoch := a.training.epoch(done); ; epoch++ {
		rate, err := a.step(s, shape, epoch, sec > 0)
		if err != nil {
			return nil, err
		}
		end := a.training.ends[epoch]
		out = append(out, sim.Stage{Until: end, Rate: rate})
		if sec <= 0 {
			return out, nil
		}
		takes := (end - done) / rate
		a.tune(s, shape)
		if takes > sec || epoch == len(a.training.ends)-1 {
			return out, nil
		}
		done = end
		if a.round != nil {
			takes = a.round(takes)
		}
		sec -= takes
	}
}

// step returns the rate in an epoch in steps at the job's own batch per second. If the
// job trains, it observes the step.
func (a *agent) step(s *speeds, shape spec.Shape, epoch int, trains bool) (rate float64, err error) {
	batch := shape.Total() * a.micro * a.accum
	t, err := s.at(shape, a.micro)
	if err != nil {
		return 0, err
	}
	n, err := a.app.noiseAt(batch, epoch)
	if err != nil {
		return 0, err
	}
	if trains {
		if err := a.observe(s, pollux.ReplicaStep{Nodes: shape.Nodes(), Replicas: shape.Total(), Micro: a.micro, StepSec: t.step, SyncSec: t.sync}); err != nil {
			return 0, err
		}
		a.noise = n
		if a.pool != nil && epoch == 0 {
			a.pool.first = n
		}
	}
	sec := t.step + float64(a.accum-1)*(t.step-t.sync)
	gain := n.gain(float64(batch) / float64(a.app.initial()))
	return gain / (a.training.gains[epoch] * sec * a.tables.slowdown(a.app.name)), nil
}

// observe records a step and fits the model, if the step has a new combination of nodes,
// replicas and micro-batch.
func (a *agent) observe(s *speeds, step pollux.ReplicaStep) error {
	e := a.types[s.accelerator]
	if e == nil {
		e = &observations{speeds: s}
		a.types[s.accelerator] = e
	}
	known := func(o pollux.ReplicaStep) bool {
		return o.Nodes == step.Nodes && o.Replicas == step.Replicas && o.Micro == step.Micro
	}
	if slices.ContainsFunc(e.steps, known) {
		return nil
	}
	e.steps = append(e.steps, step)
	model, err := pollux.FitReplicas(e.steps)
	if err != nil {
		return fmt.Errorf("goodput: %s: %w", s.what, err)
	}
	e.model = model
	return nil
}

// tune chooses the batch on a shape: the one with the highest goodput, or the smallest
// if the job has no observations on these devices.
func (a *agent) tune(s *speeds, shape spec.Shape) {
	devices := shape.Total()
	if e := a.types[s.accelerator]; e != nil {
		r := batchRange{nodes: shape.Nodes(), replicas: devices, minLocal: s.minLocal, maxLocal: s.maxLocalOn(shape), maxBatch: a.app.largest()}
		a.micro, a.accum, _ = a.best(e.model, r)
	} else {
		batch := max(a.app.initial(), s.minLocal*devices)
		a.micro, a.accum = splitShare(float64(batch)/float64(devices), a.tables.maxLocal(a.app.name, s), devices == 1 && batch > a.app.initial())
	}
	if most := s.maxLocalOfCount(devices); most > 0 {
		a.micro = min(a.micro, most)
	}
	a.micro = max(min(a.micro, a.app.largest()/(devices*a.accum)), 1)
}

// batchRange bounds the batches to choose from.
type batchRange struct {
	nodes, replicas    int
	minLocal, maxLocal int // samples per device and micro-batch
	maxBatch           int // samples per step
}

// best returns the split of the batch with the highest goodput by a model, the first
// of equals, and that goodput; 0 if no batch can be trained.
func (a *agent) best(model *pollux.ReplicaModel, r batchRange) (micro, accum int, goodput float64) {
	initial, noise := a.app.initial(), a.latestNoise()
	for i, batch := range geometric(float64(max(initial, r.minLocal*r.replicas)), float64(r.maxBatch)) {
		share := batch / float64(r.replicas)
		m, n := splitShare(share, r.maxLocal, r.replicas == 1 && share > float64(initial))
		if i > 0 && m == micro && n == accum {
			continue
		}
		v := 0.0
		if m >= r.minLocal && m <= r.maxLocal {
			v = noise.gain(float64(r.replicas*m*n)/float64(initial)) / model.Seconds(r.nodes, r.replicas, m, n)
		}
		if i == 0 || v > goodput {
			micro, accum, goodput = m, n, v
		}
	}
	return micro, accum, goodput
}

// splitShare splits the samples of a device into as few equal micro-batches of at most
// most samples as possible, at least two if several.
func splitShare(share float64, most int, several bool) (micro, accum int) {
	const slack = 1e-8
	accum = max(int(math.Ceil(share/float64(most)-slack)), 1)
	if several {
		accum = max(accum, 2)
	}
	return int(math.Ceil(share/float64(accum) - slack)), accum
}

// geometric returns a geometric series of 50 numbers from lo to hi.
func geometric(lo, hi float64) []float64 {
	const n = 50
	out := make([]float64, n)
	for i := range out {
		out[i] = lo * math.Pow(hi/lo, float64(i)/(n-1))
	}
	out[n-1] = hi
	return out
}

// maxLocal returns the largest number of samples per device and micro-batch.
func (t *Tables) maxLocal(model string, s *speeds) int {
	if l := t.limit(model, s); l.Local > 0 {
		return min(s.maxLocal, l.Local)
	}
	return s.maxLocal
}

// maxLocalOn returns the largest measured number of samples per device on a shape, or else
// on as many nodes and replicas or more.
func (s *speeds) maxLocalOn(shape spec.Shape) int {
	if p := s.placement(shape); p != nil {
		return int(p.local[len(p.local)-1])
	}
	most := 0.0
	for _, m := range s.spread {
		if m.nodes >= float64(shape.Nodes()) && m.replicas >= float64(shape.Total()) {
			most = max(most, m.local)
		}
	}
	if most == 0 {
		return s.maxLocal
	}
	return int(most)
}

// maxLocalOfCount returns the largest number of samples per device of any measured
// placement with so many devices, 0 if there is none.
func (s *speeds) maxLocalOfCount(devices int) (most int) {
	for _, shape := range s.placed {
		if p := s.placement(shape); p != nil && shape.Total() == devices {
			most = max(most, int(p.local[len(p.local)-1]))
		}
	}
	return most
}
