package scheduler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Oracle has the performance predictions of a policy, its belief. *planner.Planner is
// one. It is safe for concurrent use. Errors wrap perfmodel.ErrNotCovered if no model
// covers the request, planner.ErrInfeasible if no plan fits, and ctx.Err() once ctx is
// done. An Oracle does not keep or modify its arguments. Callers must not modify results,
// which may be shared with later answers.
type Oracle interface {
	// Predict returns the throughput of a configuration, and its memory if known. It does
	// not check that the configuration fits.
	Predict(ctx context.Context, c spec.Config) (spec.Prediction, error)
	// Best returns the best choice that fits, by the objective of r.
	Best(ctx context.Context, r planner.Request) (planner.Choice, error)
	// Curve returns the best choice with at most n devices, for n in 1..r.Devices. Counts
	// below the first that fits have no point. No point at all is an error.
	Curve(ctx context.Context, r planner.Request) (planner.Curve, error)
	// Rank returns all candidates: those that fit, best first, then the others with the
	// reason. No candidate at all is an error.
	Rank(ctx context.Context, r planner.Request) (planner.Ranking, error)
}

// ShapeRanker is an Oracle that finds the best plan of each shape faster than by Rank.
type ShapeRanker interface {
	Oracle
	// PerShape returns, for each shape, the first choice of Rank that fits, has a throughput and passes accept; best
	// first, empty if there is none. Errors are those of Rank.
	PerShape(ctx context.Context, r planner.Request, accept func(*spec.Config) bool) ([]planner.Choice, error)
}

// PerShape returns the answer of o if it is a ShapeRanker, and the same from its Rank otherwise.
func PerShape(ctx context.Context, o Oracle, r planner.Request, accept func(*spec.Config) bool) ([]planner.Choice, error) {
	if s, ok := o.(ShapeRanker); ok {
		return s.PerShape(ctx, r, accept)
	}
	ranking, err := o.Rank(ctx, r)
	if err != nil {
		return nil, err
	}
	seen := map[spec.Shape]bool{}
	var out []planner.Choice
	for i := range ranking.Choices {
		c := &ranking.Choices[i]
		if c.Fits && !seen[c.Config.Shape] && c.Prediction.Throughput > 0 && accept(&c.Config) {
			seen[c.Config.Shape] = true
			out = append(out, *c)
		}
	}
	return out, nil
}

// Elastic is an Oracle for jobs that change their batch as they train. It may be used by
// one run only.
type Elastic interface {
	Oracle
	// Goodput returns the plan of highest goodput for j now, on a shape of devices of
	// group, and its rate in steps/s, counted at the job's own batch. Rate 0 means that
	// the shape has to be tried. The error wraps perfmodel.ErrNotCovered if j cannot run
	// on it, or must not. j is not modified and not kept.
	Goodput(ctx context.Context, j *JobState, group *spec.NodeGroup, shape spec.Shape) (plan spec.Plan, rate float64, err error)
}

// Batcher is an Oracle for jobs that may train other batches than their own.
type Batcher interface {
	Oracle
	// Batches returns the least and the most samples per step of j on devices of group.
	// The error wraps perfmodel.ErrNotCovered if they are unknown.
	Batches(j *spec.Job, group *spec.NodeGroup) (least, most int, err error)
}

// Learner is an Oracle that learns from the step times of running jobs. It belongs to one
// run.
type Learner interface {
	Oracle
	// Learn adds the observations by now: OK measurements of a job's own configuration,
	// with one step time each. The engine calls it before every decision, mostly with
	// none. The Learner owns seen. An error ends the run; a fit that fails is no error.
	Learn(ctx context.Context, now time.Duration, seen []spec.Measurement) error
	// Revision counts the changes of the model of a key. Answers about the key stay
	// equal until it changes.
	Revision(k spec.Key) int
	// Learned summarises the learning so far.
	Learned() Learned
}

// Learned summarises the work of a Learner.
type Learned struct {
	Seen  int // step times observed
	Known int // those with a prediction before
	// MAPE is the mean of |predicted - observed| / observed over Known, each predicted
	// before its observation; 0 without any.
	MAPE  float64
	Fits  int // of performance models, after the first of each
	Unfit int // fits that failed, after which the model stayed as it was
}

// LossLog has the training losses of jobs. It belongs to one run.
type LossLog interface {
	// Log returns the losses of j so far, false if it logs none. Callers must not modify
	// them; they hold until the next call.
	Log(ctx context.Context, j *JobState) (Losses, bool)
}

// Losses are the training losses of a job up to now.
type Losses struct {
	Every float64 // steps that each value averages
	// Values are fractions of the initial loss; not to be modified.
	Values []float64
	// Least is the owner's stopping criterion: the job is done once the loss falls by no
	// more than this from one value to the next, without noise.
	Least float64
}

// ServerSpace is the set of configurations that jobs with parameter servers may have. It
// is safe for concurrent use.
type ServerSpace interface {
	// Allows reports whether a job may run with the model, batch, replicas, parameter
	// servers and accelerator of c, on any shape.
	Allows(c spec.Config) bool
}

// Policy decides which jobs get which devices. It belongs to one run.
type Policy interface {
	// Decide returns the target for the snapshot. It must not keep or modify the
	// snapshot, and keeps no state but that of its algorithm, or of the jobs from
	// Snapshot.Changed. The caller owns the Decision; its grants are not modified any
	// more. An error ends the run.
	Decide(ctx context.Context, s *Snapshot) (Decision, error)
}

// Fluid is a Policy that divides devices at will: jobs have fractions of time on several
// grants at once. No cluster can apply that. It measures the loss by rounds, gangs and
// starts. The simulator calls Shares at every arrival and completion, and never Decide.
type Fluid interface {
	Policy
	// Shares returns the shares of all jobs until the next call: of each job at most all
	// of its time, of each group at most its devices. Users should see the warnings. The
	// caller owns the results. An error ends the run.
	Shares(ctx context.Context, s *Snapshot) (shares []TimeShare, warnings []string, err error)
}

// TimeShare is a grant for a fraction of the time. Its devices stand for any others of
// their group.
type TimeShare struct {
	Grant    *Grant
	Fraction float64 // 0 to 1
}

// Admission decides whether a submitted job enters the queue. It belongs to one run.
type Admission interface {
	// Admit reports whether j enters, and the reason if not. It must not keep or modify
	// the snapshot. An error ends the run.
	Admit(ctx context.Context, s *Snapshot, j spec.Job) (ok bool, why string, err error)
}

// Holder is an Admission that holds refused jobs instead of rejecting them. The engine
// calls Admit for them again after every arrival and completion.
type Holder interface {
	Admission
	// Line returns the name of the line that j waits in. Admit is called for the first
	// of a line before all behind it. Lines are independent. j is not modified.
	Line(j *spec.Job) string
}

// Lender is a Holder with lines that lend each other what they may request, and get it back by eviction.
type Lender interface {
	Holder
	// Less reports whether a comes before b in their line; ties go by arrival.
	Less(a, b *spec.Job) bool
	// First returns the index of the job to which Admit is applied first, among the first ones of
	// the lines.
	First(s *Snapshot, heads []*spec.Job) int
	// Evict returns jobs in the system to hold again so that j, which Admit refused, is admitted, and
	// the reason; none = j stays held.
	Evict(s *Snapshot, j *spec.Job) (jobs []*JobState, why string)
}

// Refuser is an Admission that rejects some jobs for good.
type Refuser interface {
	Admission
	// Refuse returns the reason why j can never be admitted, "" if it can. The engine
	// calls it once for every submitted job that could run on the cluster. An error ends
	// the run.
	Refuse(ctx context.Context, c spec.Cluster, j *spec.Job) (why string, err error)
}

// ClusterChecker is a part of a run that can contradict a cluster.
type ClusterChecker interface {
	// CheckCluster returns an error that names the contradiction. The engine calls it
	// before the run.
	CheckCluster(c spec.Cluster) error
}

// Placer finds free devices of a cluster group. It does not modify free and is safe for
// concurrent use.
type Placer interface {
	// Place returns devices of exactly the wanted shape, each count on its own node,
	// ascending by node; false if there are none. It ignores the needs for hosts: free is
	// the result of Inventory.For, and the caller, which owns the slots, adds the needs.
	Place(free *Inventory, group int, want spec.Shape) ([]Slot, bool)
	// Lay returns the shape of a number of devices if all layouts were equally fast, for
	// jobs of unknown speed; false if too few are free.
	Lay(free *Inventory, group, devices int) (spec.Shape, bool)
}

// Chooser is a Placer that also restricts the layouts of a job.
type Chooser interface {
	Placer
	// Choose returns the candidates that a job may use, in their order: at least one of
	// every device count and group among them. It must not modify candidates.
	Choose(candidates []Candidate) []Candidate
}

// Candidate is a candidate configuration of a job: a plan on a shape in a group of nodes.
type Candidate struct {
	Group int
	Plan  spec.Plan
	Shape spec.Shape
	Rate  float64 // predicted steps/s, 0 = unknown
}

// Phase is the state of a job between submission and completion.
type Phase uint8

const (
	Waiting  Phase = iota // submitted, holds nothing, has never run or was stopped
	Starting              // holds devices, pays its start cost
	Running               // holds devices, makes progress
	Finished
)

func (p Phase) String() string { return [...]string{"waiting", "starting", "running", "finished"}[p] }

// Slot is the part of a job on one node: devices, or replicas and parameter servers on
// CPUs, with what all of them need of the host.
type Slot struct {
	Node    int // index into the cluster's nodes
	Devices int
	Workers int // replicas on CPUs alone, of jobs that take no devices
	Servers int // parameter servers
	Host    spec.Host
}

// String writes node, devices, tasks on CPUs, and the part of the host if there is any.
func (s Slot) String() string {
	text := fmt.Sprintf("%d %d", s.Node, s.Devices)
	if s.Workers > 0 || s.Servers > 0 {
		text = fmt.Sprintf("%d %s", s.Node, s.What())
	}
	if s.Host != (spec.Host{}) {
		text += fmt.Sprintf(", %v", s.Host)
	}
	return "{" + text + "}"
}

// What writes the tasks of s: "2 devices", "1 device, 3 parameter servers".
func (s Slot) What() string {
	var parts []string
	add := func(n int, what string) { parts = append(parts, spec.Count(n, what)) }
	if s.Devices != 0 || s.Workers == 0 && s.Servers == 0 {
		add(s.Devices, "device")
	}
	if s.Workers != 0 {
		add(s.Workers, "worker")
	}
	if s.Servers != 0 {
		add(s.Servers, "parameter server")
	}
	return strings.Join(parts, ", ")
}

// nothing reports whether s takes neither devices nor anything of a host.
func (s Slot) nothing() bool { return s.Devices == 0 && s.Host == (spec.Host{}) }

// Grant gives a job devices and the plan to run on them. Once in a Decision it
// is shared and no longer modified.
type Grant struct {
	Job   spec.JobID
	Plan  spec.Plan
	Shape spec.Shape
	// Slots agree with Shape in devices and with Plan in parameter servers, and in workers
	// if these are the replicas. They cover what the job needs of the host, are in one
	// group, and ascend by node.
	Slots []Slot
	// Elastic leaves the batch to the job, which trains the one of highest goodput at the
	// time (Qiao et al., Pollux, OSDI 2021, section 3.2); that of Plan is the first.
	// Truths with one batch per job ignore it.
	Elastic bool
	// With is the job that shares these devices, "" = none. It holds the same devices, and
	// its grant names this job.
	With spec.JobID
}

// Devices returns the number of devices granted, 0 for a nil Grant.
func (g *Grant) Devices() int {
	if g == nil {
		return 0
	}
	n := 0
	for _, s := range g.Slots {
		n += s.Devices
	}
	return n
}

// Workers returns the number of replicas that run on CPUs alone.
func (g *Grant) Workers() int {
	n := 0
	for _, s := range g.Slots {
		n += s.Workers
	}
	return n
}

// Servers returns the number of parameter servers.
func (g *Grant) Servers() int {
	n := 0
	for _, s := range g.Slots {
		n += s.Servers
	}
	return n
}

// Same reports whether g and o give the same job the same plan, shape, devices and
// colocated job, so that replacing one by the other changes nothing. It ignores the
// batches of the plans if both are Elastic.
func (g *Grant) Same(o *Grant) bool {
	return g == o || g.Stays(o) && g.With == o.With
}

// trains returns the plan, without the batch if g is Elastic.
func (g *Grant) trains() spec.Plan {
	p := g.Plan.Normal()
	if g.Elastic {
		p.MicroBatch, p.AccumSteps = 1, 1
	}
	return p
}

// JobState is the state of a job in the engine. Progress counts optimizer steps at the
// job's own batch; a job submitted by duration or epochs has the steps of the truth.
// For a job with devices Phase, Done, Remaining and Attained are those of its last
// update, see Snapshot.
type JobState struct {
	Job   *spec.Job // not to be modified
	Order int       // its place in the order of arrival among all jobs of the run
	Phase Phase

	Done      float64       // steps completed
	Remaining float64       // steps to go
	Attained  float64       // device-seconds received, start costs included; half of those of shared devices; of a job on CPUs those of its replicas
	Restarts  int           // times it was stopped or moved while it held devices
	Failures  int           // times it lost its devices because a node went down
	Since     time.Duration // when it got its Grant; without one, when it entered the queue or last lost one
	Waited    time.Duration // its longest completed wait in a row
	FirstRun  time.Duration // when it first got devices, meaningful once Attained > 0 or Grant != nil
	StartCost time.Duration // of its next start; with a Grant, of a change to another plan
	Ready     time.Duration // when its start cost is paid and progress begins, or began; meaningful with a Grant
	Ran       Ran           // its observed progress with Grant, zero if that is estimated or there is none
	Grant     *Grant        // nil = none; not to be modified
}

// Ran is progress that was observed: steps, and the time that they took.
type Ran struct {
	Steps float64
	Time  time.Duration
}

// LongestWait returns the longest wait of j in a row, as of now.
func (j *JobState) LongestWait(now time.Duration) time.Duration {
	if j.Grant != nil {
		return j.Waited
	}
	return max(j.Waited, now-j.Since)
}
