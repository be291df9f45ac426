package scheduler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Oracle is what a policy may ask about performance: its belief.
// *planner.Planner is one.
type Oracle interface {
	Predict(ctx context.Context, c spec.Config) (spec.Prediction, error)
	// Best returns the fastest choice that fits, or planner.ErrInfeasible.
	Best(ctx context.Context, r planner.Request) (planner.Choice, error)
	Curve(ctx context.Context, r planner.Request) (planner.Curve, error)
	// Rank returns all choices of a request, best first.
	Rank(ctx context.Context, r planner.Request) (planner.Ranking, error)
}

// Elastic is an Oracle that knows jobs which change their batch as they train.
type Elastic interface {
	Oracle
	// Goodput returns how many steps of its work, counted at its own batch, j makes a
	// second at present on a shape of devices of group if it trains the batch that is
	// worth most there, and the plan that does: 0 where that is to be tried. The error
	// wraps perfmodel.ErrNotCovered where j cannot run so, or is not to.
	Goodput(ctx context.Context, j *JobState, group *spec.NodeGroup, shape spec.Shape) (plan spec.Plan, rate float64, err error)
}

// Batcher is an Oracle that knows jobs which may train other batches than their own.
type Batcher interface {
	Oracle
	// Batches returns the least and the most samples a step that j can train on devices
	// of group. The error wraps perfmodel.ErrNotCovered where nothing is known of it.
	Batches(j *spec.Job, group *spec.NodeGroup) (least, most int, err error)
}

// Learner is an Oracle that changes its mind in the course of a run: it is told how
// long the steps of running jobs take.
type Learner interface {
	Oracle
	// Learn takes in what was seen by now: measurements that are OK, of one step
	// time each, and a job's own configuration. It is called before every decision,
	// mostly with nothing.
	Learn(ctx context.Context, now time.Duration, seen []spec.Measurement) error
	// Revision tells how often what is believed of a key has changed. Answers about
	// it stay the same until it does.
	Revision(k spec.Key) int
	// Learned tells what was learnt so far.
	Learned() Learned
}

// Learned is what a Learner did.
type Learned struct {
	Seen  int // step times
	Known int // of them, those of which something was believed
	// MAPE is the mean of |believed - seen| / seen over Known, each believed before
	// it was seen; 0 of none.
	MAPE  float64
	Fits  int // of performance models, after the first of each
	Unfit int // of them, those that gave nothing, so that what was believed stayed
}

// LossLog tells how jobs get on with what they are there for.
type LossLog interface {
	// Log returns what j has logged so far; false where it logs nothing.
	Log(ctx context.Context, j *JobState) (Losses, bool)
}

// Losses are the training losses of a job up to now.
type Losses struct {
	Every float64 // steps from one to the next, of which each is the mean
	// Values are shares of the loss of the beginning; not to be modified.
	Values []float64
	// Least is the owner's criterion: once the loss falls by no more from one to the
	// next, but for noise, the job is done.
	Least float64
}

// ServerSpace says what jobs with parameter servers may be granted. It is safe for
// concurrent use.
type ServerSpace interface {
	// Allows reports whether a job may run with the model, batch, replicas and
	// parameter servers of c on its accelerator; the shape does not matter.
	Allows(c spec.Config) bool
}

// Policy decides who gets what. Decide is a function of the snapshot: it must
// not keep the snapshot, and keeps no state but what its algorithm is made of,
// or what it knows of the jobs from Snapshot.Changed.
type Policy interface {
	Decide(ctx context.Context, s *Snapshot) (Decision, error)
}

// Fluid is a Policy that can say what it is after as if devices could be divided at
// will: fractions of time on several grants at once. No cluster can carry that out;
// it tells what is lost to rounds, gangs and starts. The simulator asks it for
// Shares whenever jobs have come or gone, and never to decide.
type Fluid interface {
	Policy
	// Shares returns what every job is to have until it is asked again, of each job at
	// most all of its time and of each group at most its devices. warnings should be
	// seen by people.
	Shares(ctx context.Context, s *Snapshot) (shares []TimeShare, warnings []string, err error)
}

// TimeShare is a grant for a fraction of the time, on devices that stand for any
// others of their group.
type TimeShare struct {
	Grant    *Grant
	Fraction float64 // 0 to 1
}

// Admission decides whether a job enters the queue when it is submitted. why
// says what it was refused for.
type Admission interface {
	Admit(ctx context.Context, s *Snapshot, j spec.Job) (ok bool, why string, err error)
}

// Holder is an Admission that makes those it turns away wait outside instead of
// sending them off: it is asked about them again whenever others have arrived or
// gone.
type Holder interface {
	Admission
	// Line names the line that j waits in. The first of a line is asked about
	// before all behind it, and the lines do not hold each other up.
	Line(j *spec.Job) string
}

// Refuser is an Admission that turns some jobs away for good, whether it makes others
// wait or not.
type Refuser interface {
	Admission
	// Refuse is asked of every job that could run on the cluster when it is submitted.
	// why says what it can never be let in for, "" if it can.
	Refuse(ctx context.Context, c spec.Cluster, j *spec.Job) (why string, err error)
}

// ClusterChecker is a part of a composition that can contradict a cluster. It is asked
// before anything else.
type ClusterChecker interface {
	CheckCluster(c spec.Cluster) error
}

// Placer finds devices among the free ones of a cluster group, false when there
// are none. It takes nothing from free.
type Placer interface {
	// Place returns devices of exactly the wanted shape, each count on a node
	// of its own, ascending by node. What the job needs of the host is not its
	// business: free is what Inventory.For leaves, and who asks adds the need.
	Place(free *Inventory, group int, want spec.Shape) ([]Slot, bool)
	// Lay returns the shape that the given number of devices would take if
	// every layout ran alike: for jobs nothing is known about.
	Lay(free *Inventory, group, devices int) (spec.Shape, bool)
}

// Chooser is a Placer that has a say in which layouts a job may have at all, not
// only in where they are.
type Chooser interface {
	Placer
	// Choose returns those of the ways to run a job that it may use, in their
	// order: at least one of every device count and group among them. It must not
	// modify ways.
	Choose(ways []Way) []Way
}

// Way is one way to run a job: a plan on a shape in a group of nodes.
type Way struct {
	Group int
	Plan  spec.Plan
	Shape spec.Shape
	Rate  float64 // believed steps/s, 0 = nothing is believed
}

// Executor makes a decision true: it starts, stops and moves jobs.
type Executor interface {
	Apply(ctx context.Context, d Decision) error
}

// Phase is where a job is in its life.
type Phase uint8

const (
	Waiting  Phase = iota // submitted, holds nothing, has never run or was stopped
	Starting              // holds devices, pays its start cost
	Running               // holds devices, makes progress
	Finished
)

func (p Phase) String() string { return [...]string{"waiting", "starting", "running", "finished"}[p] }

// Slot is what a job has of one node: some devices, or replicas and parameter
// servers that run on CPUs, with what all of them need of the host.
type Slot struct {
	Node    int // index into the cluster's nodes
	Devices int
	Workers int // replicas on CPUs alone, of jobs that take no devices
	Servers int // parameter servers
	Host    spec.Host
}

// String writes node and devices, what runs on CPUs, and the host's part where it
// takes any.
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

// What says what s has of its node: "2 devices", "1 device, 3 parameter servers".
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
	// Slots agree with Shape in their devices and with Plan in parameter servers, and
	// in workers where it is those that are replicas. They have at least what the job
	// needs of the host, are in one group, and ascend by node.
	Slots []Slot
	// Elastic leaves the batch to the job, which trains the one that is worth most at
	// the time (Qiao et al., Pollux, OSDI 2021, section 3.2): that of Plan is the
	// one of the beginning. Truths that know of one batch only ignore it.
	Elastic bool
	// With is the job that shares these devices, "" = none does. It holds the same
	// ones, and shares them with this one.
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

// Same reports whether g and o give the same job the same plan, shape and
// devices, with the same company or none, so that going from one to the other
// changes nothing. Of two that leave the batch to the job that of the plan does
// not matter.
func (g *Grant) Same(o *Grant) bool {
	return g == o || g.Stays(o) && g.With == o.With
}

// trains returns the plan, less the batch where that is the job's to choose.
func (g *Grant) trains() spec.Plan {
	p := g.Plan.Normal()
	if g.Elastic {
		p.MicroBatch, p.AccumSteps = 1, 1
	}
	return p
}

// JobState is a job as the engine knows it. Progress counts optimizer steps at the
// job's own batch; a job submitted by duration or epochs alone has as many as the
// engine's truth says. Of a job that holds devices Phase, Done, Remaining and
// Attained are what they were when it was last looked at, see Snapshot.
type JobState struct {
	Job   *spec.Job // not to be modified
	Order int       // its place in the order of arrival, among all jobs there ever are
	Phase Phase

	Done      float64       // steps completed
	Remaining float64       // steps to go
	Attained  float64       // device-seconds received, start costs included; half of those of shared devices; of a job on CPUs those of its replicas
	Restarts  int           // times it was stopped or moved while it held devices
	Failures  int           // times it lost its devices because a node went down
	Since     time.Duration // when it got its Grant; without one, when it entered the queue or last lost one
	Waited    time.Duration // its longest wait in a row that is over
	FirstRun  time.Duration // when it first got devices, meaningful once Attained > 0 or Grant != nil
	StartCost time.Duration // what its next start costs; with a Grant what a change costs, to another plan
	Ready     time.Duration // when its start cost is paid and progress begins, or began; meaningful with a Grant
	Grant     *Grant        // what it holds now, nil if nothing; not to be modified
}

// LongestWait returns the longest j has waited in a row, as of now.
func (j *JobState) LongestWait(now time.Duration) time.Duration {
	if j.Grant != nil {
		return j.Waited
	}
	return max(j.Waited, now-j.Since)
}
