package scheduler

import (
	"context"
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

// Policy decides who gets what. Decide is a function of the snapshot: it must
// not keep the snapshot, and keeps no state but what its algorithm is made of.
type Policy interface {
	Decide(ctx context.Context, s *Snapshot) (Decision, error)
}

// Admission decides whether a job enters the queue when it is submitted. why
// says what it was refused for.
type Admission interface {
	Admit(ctx context.Context, s *Snapshot, j spec.Job) (ok bool, why string, err error)
}

// Placer finds devices of the wanted shape among the free ones, nil and false
// when there are none. It takes nothing from free.
type Placer interface {
	Place(free *Inventory, group int, want spec.Shape) ([]Slot, bool)
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

// Slot is some devices of one node.
type Slot struct {
	Node    int // index into the cluster's nodes
	Devices int
}

// Grant gives a job devices and the plan to run on them.
type Grant struct {
	Job   spec.JobID
	Plan  spec.Plan
	Shape spec.Shape
	Slots []Slot // agree with Shape; ascending by node
}

// JobState is a job as the engine knows it. Progress counts optimizer steps.
type JobState struct {
	Job   spec.Job
	Phase Phase

	Done      float64       // steps completed
	Remaining float64       // steps to go
	Attained  float64       // device-seconds received, start costs included
	Restarts  int           // times it was stopped or moved while it held devices
	FirstRun  time.Duration // when it first got devices, meaningful once Attained > 0 or Grant != nil
	StartCost time.Duration // what the next start, resume or change costs
	Grant     *Grant        // what it holds now, nil if nothing; not to be modified
}

// Snapshot is what a policy sees: complete, read-only, jobs sorted by submit
// time, then ID.
type Snapshot struct {
	Now     time.Duration
	Cluster spec.Cluster
	Jobs    []*JobState // admitted and not finished
}

// Decision is the whole target, not a list of changes: a job without a grant
// holds nothing afterwards. An unchanged Grant (same plan, shape and slots)
// leaves the job alone.
type Decision struct {
	Grants []Grant
	Why    map[spec.JobID]string // reasons worth showing, optional
	Wake   time.Duration         // ask again at this time at the latest, 0 = only at the next event
}
