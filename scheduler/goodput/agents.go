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

// Agents are the jobs of one run that know of their speed what they have seen of
// it: each fits a model for every type of device it has run on to the steps it has
// made there, chooses its batch by that, and tells the scheduler. Truth is how
// such jobs get on, Oracle what is believed of them. They must be of one run, and
// are not safe for concurrent use.
//
// Source: Jayaram Subramanya et al., Sia, SOSP 2023, sections 3.2 and 3.3, and its
// artifact siasosp23/artifacts at commit aaf7a0d, class Job.
type Agents struct {
	truth   *Truth
	rules   AgentRules
	cluster spec.Cluster
	jobs    map[spec.JobID]*agent
	pool    map[string]*history // by model; nil = each job knows what it has seen itself
	// Watch, if set, is told at the beginning of each round how a job that holds
	// devices goes on.
	Watch func(now time.Duration, job spec.JobID, a AgentState)
}

// AgentState is what a job that chooses its batch does at a time.
type AgentState struct {
	Batch    int     // samples a step
	Accum    int     // micro-batches of a step
	Epoch    int     // from 0
	Progress float64 // steps at the initial batch
}

// AgentRules are the parts of agents in which simulators differ. The zero value is
// Pacer's own semantics.
type AgentRules struct {
	// MaxBatch returns the largest batch, in samples, that the scheduler expects of j,
	// at most largest, which the application can train. nil = largest.
	MaxBatch func(j *spec.Job, largest int) int
	// RoundSec rounds the duration of an epoch in seconds, as sim.Rules.RoundSec does.
	RoundSec func(sec float64) float64
}

// NewAgents returns the agents of a run on t.
func NewAgents(t *Tables, cl spec.Cluster, r AgentRules) *Agents {
	return &Agents{truth: NewTruth(t, cl), rules: r, cluster: cl, jobs: map[spec.JobID]*agent{}}
}

// Pool makes jobs of one model know what the others have seen, as if a scheduler
// kept it: how long steps take, and what larger batches are worth in the first
// epoch. To be called before the run.
func (a *Agents) Pool() { a.pool = map[string]*history{} }

// history is what jobs of one model have observed.
type history struct {
	types map[string]*experience
	first noise // of the first epoch: whenever types holds something, there was one
}

// Truth returns how the jobs get on.
func (a *Agents) Truth() sim.Tuner { return agentTruth{a.truth, a} }

// Oracle returns the belief about the jobs.
func (a *Agents) Oracle() scheduler.Elastic { return agentOracle{a} }

// agent is one job.
type agent struct {
	app    *app
	tables *Tables
	course *course
	types  map[string]*experience // by accelerator
	noise  noise                  // of the epoch trained last, at the batch trained
	pool   *history               // nil = there is none

	round func(sec float64) float64 // AgentRules.RoundSec
	on    spec.Key                  // accelerator, and shape in place of the model: what the batch was chosen for
	micro int
	accum int
}

// experience is what a job has seen of one type of device.
type experience struct {
	speeds *speeds
	steps  []pollux.ReplicaStep
	model  *pollux.ReplicaModel
}

// of returns the agent of j.
func (a *Agents) of(j *spec.Job) (*agent, error) {
	if out := a.jobs[j.ID]; out != nil {
		return out, nil
	}
	c, err := a.truth.courseOf(j)
	if err != nil {
		return nil, err
	}
	out := &agent{app: a.truth.tables.apps[j.Model.Name], tables: a.truth.tables, course: c, types: map[string]*experience{}, round: a.rules.RoundSec}
	if a.pool != nil {
		out.join(a.pool)
	}
	a.jobs[j.ID] = out
	return out, nil
}

// join makes a know what is known of its model, and add to it.
func (a *agent) join(pool map[string]*history) {
	known := pool[a.app.name]
	if known == nil {
		known = &history{types: a.types}
		pool[a.app.name] = known
	}
	a.pool, a.types = known, known.types
}

// seen returns the noise of the epoch trained last, or of the first that another
// job trained.
func (a *agent) seen() noise {
	if a.pool != nil && a.noise == (noise{}) {
		return a.pool.first
	}
	return a.noise
}

// agentTruth is how agents get on.
type agentTruth struct {
	*Truth
	agents *Agents
}

// Tune implements sim.Tuner: what a job does in a round that lasts until then.
// A job that does not choose its batch continues.
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
	if on := (spec.Key{Model: shape.Devices, Accelerator: group.Accelerator.Name}); a.on != on {
		a.on = on
		a.tune(s, shape)
	}
	if t.agents.Watch != nil {
		t.agents.Watch(now, j.Job.ID, a.state(shape, j.Done))
	}
	return a.train(s, shape, j.Done, (until - max(now, j.Ready)).Seconds())
}

// state returns what a job does that has so many steps behind it.
func (a *agent) state(shape spec.Shape, done float64) AgentState {
	c := a.course
	out := AgentState{Batch: shape.Total() * a.micro * a.accum, Accum: a.accum, Epoch: c.epoch(done)}
	begin := 0.0
	if out.Epoch > 0 {
		begin, out.Progress = c.ends[out.Epoch-1], a.app.ends[out.Epoch-1]
	}
	out.Progress += (done - begin) * c.gains[out.Epoch]
	return out
}

// train works out how the job gets on for so many seconds from so many steps done
// on. At the beginning, and of each epoch, it sees how long a step takes; at the
// end, and of each epoch, it chooses its batch anew.
func (a *agent) train(s *speeds, shape spec.Shape, done, sec float64) (out []sim.Stage, err error) {
	for epoch := a.course.epoch(done); ; epoch++ {
		rate, err := a.step(s, shape, epoch, sec > 0)
		if err != nil {
			return nil, err
		}
		end := a.course.ends[epoch]
		out = append(out, sim.Stage{Until: end, Rate: rate})
		if sec <= 0 {
			return out, nil
		}
		takes := (end - done) / rate
		a.tune(s, shape)
		if takes > sec || epoch == len(a.course.ends)-1 {
			return out, nil
		}
		done = end
		if a.round != nil {
			takes = a.round(takes)
		}
		sec -= takes
	}
}

// step returns how many steps at its own batch the job makes a second in an epoch,
// having seen it if it trains.
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
		if err := a.see(s, pollux.ReplicaStep{Nodes: shape.Nodes(), Replicas: shape.Total(), Micro: a.micro, StepSec: t.step, SyncSec: t.sync}); err != nil {
			return 0, err
		}
		a.noise = n
		if a.pool != nil && epoch == 0 {
			a.pool.first = n
		}
	}
	sec := t.step + float64(a.accum-1)*(t.step-t.sync)
	gain := n.gain(float64(batch) / float64(a.app.initial()))
	return gain / (a.course.gains[epoch] * sec * a.tables.slowdown(a.app.name)), nil
}

// see takes in a step, if it is the first of its kind.
func (a *agent) see(s *speeds, step pollux.ReplicaStep) error {
	e := a.types[s.accelerator]
	if e == nil {
		e = &experience{speeds: s}
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

// tune chooses the batch on a shape: before the job has run on such devices the
// least, then the one of most goodput.
func (a *agent) tune(s *speeds, shape spec.Shape) {
	devices := shape.Total()
	if e := a.types[s.accelerator]; e != nil {
		r := batchRange{nodes: shape.Nodes(), replicas: devices, least: s.least, most: s.mostOn(shape), upTo: a.app.largest()}
		a.micro, a.accum, _ = a.best(e.model, r)
	} else {
		batch := max(a.app.initial(), s.least*devices)
		a.micro, a.accum = splitShare(float64(batch)/float64(devices), a.tables.mostLocal(a.app.name, s), devices == 1 && batch > a.app.initial())
	}
	if most := s.mostOfCount(devices); most > 0 {
		a.micro = min(a.micro, most)
	}
	a.micro = max(min(a.micro, a.app.largest()/(devices*a.accum)), 1)
}

// batchRange is what batches are chosen from.
type batchRange struct {
	nodes, replicas int
	least, most     int // samples per device and micro-batch
	upTo            int // samples a step
}

// best returns how a batch is trained that has most goodput by a model, the first
// of equals, and how many steps at the initial batch it makes a second; 0 where no
// batch can be trained.
func (a *agent) best(model *pollux.ReplicaModel, r batchRange) (micro, accum int, goodput float64) {
	initial, noise := a.app.initial(), a.seen()
	for i, batch := range geometric(float64(max(initial, r.least*r.replicas)), float64(r.upTo)) {
		share := batch / float64(r.replicas)
		m, n := splitShare(share, r.most, r.replicas == 1 && share > float64(initial))
		if i > 0 && m == micro && n == accum {
			continue
		}
		v := 0.0
		if m >= r.least && m <= r.most {
			v = noise.gain(float64(r.replicas*m*n)/float64(initial)) / model.Seconds(r.nodes, r.replicas, m, n)
		}
		if i == 0 || v > goodput {
			micro, accum, goodput = m, n, v
		}
	}
	return micro, accum, goodput
}

// splitShare returns the micro-batch and how many of them make so many samples on a
// device: as few as fit, at least two if that is asked for.
func splitShare(share float64, most int, several bool) (micro, accum int) {
	const slack = 1e-8
	accum = max(int(math.Ceil(share/float64(most)-slack)), 1)
	if several {
		accum = max(accum, 2)
	}
	return int(math.Ceil(share/float64(accum) - slack)), accum
}

// geometric returns 50 numbers from lo to hi, each as many times the one before.
func geometric(lo, hi float64) []float64 {
	const many = 50
	out := make([]float64, many)
	for i := range out {
		out[i] = lo * math.Pow(hi/lo, float64(i)/(many-1))
	}
	out[many-1] = hi
	return out
}

// mostLocal returns the most samples per device and micro-batch.
func (t *Tables) mostLocal(model string, s *speeds) int {
	if l := t.limit(model, s); l.Local > 0 {
		return min(s.most, l.Local)
	}
	return s.most
}

// mostOn returns the most samples per device that were measured on a shape, or on
// what is no smaller.
func (s *speeds) mostOn(shape spec.Shape) int {
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
		return s.most
	}
	return int(most)
}

// mostOfCount returns the most samples per device of any placement of so many
// devices, 0 where none was measured.
func (s *speeds) mostOfCount(devices int) (most int) {
	for _, shape := range s.placed {
		if p := s.placement(shape); p != nil && shape.Total() == devices {
			most = max(most, int(p.local[len(p.local)-1]))
		}
	}
	return most
}
