package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Cluster is a real cluster, called an engine. Its methods may be called concurrently for
// different jobs. Each writing method makes at most one change that can be seen half done: a
// controller may be killed between any two requests to the cluster, and the next one repeats
// the step. An error is retried at a later step; it wraps ErrConflict if the job changed since
// it was observed, and ErrGone if it is no longer there. A write sets j.Version to that of the
// job afterwards, since another write of the same observation may follow.
type Cluster interface {
	// Observe returns the present state. It may be stale: writes are then refused with
	// ErrConflict, or make no difference. The caller owns the result. An error means that
	// nothing is known; an object that cannot be read is a Fault in the state instead.
	Observe(ctx context.Context) (*State, error)
	// Record writes r beside the job, and changes nothing else.
	Record(ctx context.Context, j *Job, r Record) error
	// Start lets a held job run with r.RunPlan on r.RunSlots, which equal r.Plan and r.Slots,
	// and writes r, in one request if the cluster can. If it needs several, r is written
	// before the job may start. The job reads the plan from its record or its environment.
	Start(ctx context.Context, j *Job, r Record) error
	// Stop takes a released or running job back to held. A running job gets SIGTERM and the
	// cluster's grace period for its checkpoint, and is Stopping until its devices are free.
	// It changes nothing if the job is held or stopping already.
	Stop(ctx context.Context, j *Job) error
	// Watch returns a channel that receives a value after changes, several of them as one. It
	// is closed once ctx is done. An engine that can only be polled sends at its interval.
	Watch(ctx context.Context) (<-chan struct{}, error)
}

// Notifier is a Cluster that shows events to the owners of jobs, such as Kubernetes Events.
type Notifier interface {
	Cluster
	// Notify shows an event of a job. It does not block and has no error: events are advice.
	Notify(e Event)
}

var (
	// ErrConflict is the error of a write to a job that changed since it was observed.
	ErrConflict = errors.New("changed since it was observed")
	// ErrGone is the error of a write to a job that does not exist any more.
	ErrGone = errors.New("does not exist any more")
)

// State is what a cluster says of itself at one moment.
type State struct {
	Nodes  []Node // in any order; names differ
	Jobs   []Job  // the jobs that pacer schedules, in any order; IDs differ
	Faults []Fault
	// Cancelled are the jobs of pacer that are gone, or Ended, since someone cancelled or deleted them, as far as the
	// cluster still knows.
	Cancelled []spec.JobID
	// OlderThan reports whether the observation is older than a version of a job; nil = it is newer than those before it. A
	// job that is not in an older observation has not ended.
	OlderThan func(version string) bool
	// Even says that a job has the same number of devices on each of its nodes. A decision
	// with another shape is refused.
	Even bool
}

// Node is a node with devices.
type Node struct {
	Name string
	// Type is what the node is. Count is ignored. Nodes of equal types are one group of the
	// cluster that policies see. The devices are all of the node, free or not; CPUs and memory
	// of 0 are not limited.
	Type spec.NodeGroup
	Mode Mode
	// Used is what jobs that pacer does not schedule hold.
	UsedDevices int
	UsedHost    spec.Host
	// EndingDevices are held by runs of pacer's jobs that are not the present run of one of Jobs, such as those of a job that
	// ended: nothing starts on them, and they are no usage.
	EndingDevices int
}

// Mode says whether a node takes jobs.
type Mode uint8

const (
	Up       Mode = iota // takes jobs
	Draining             // drained or cordoned: jobs on it run on, none starts
	Down                 // lost, or empty and drained: nothing runs on it
)

var modes = [...]string{"up", "draining", "down"}

func (m Mode) String() string { return modes[m] }

// MarshalText writes the form of String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the form of String.
func (m *Mode) UnmarshalText(b []byte) error { return parseEnum(m, "mode", modes[:], b) }

// parseEnum sets v to the number of a name.
func parseEnum[T ~uint8](v *T, what string, names []string, b []byte) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("live: %s %q is none of %s", what, b, strings.Join(names, ", "))
	}
	*v = T(i)
	return nil
}

// Phase is what the cluster does with a job.
type Phase uint8

const (
	Held      Phase = iota // exists, holds nothing, does not start by itself
	Releasing              // was let run, and may start at any time; the cluster has not answered, and a stop now could come too late
	Released               // holds nothing yet, may start at any time, and can be stopped
	Running                // holds devices
	Stopping               // on its way from Running to Held, and holds devices; also while the cluster refuses to start it again
	Requeued               // stopped and released again by the cluster itself; it is stopped before its next start
	Ended                  // completed, failed or cancelled; a job that is missing has ended too
)

var phases = [...]string{"held", "releasing", "released", "running", "stopping", "requeued", "ended"}

func (p Phase) String() string { return phases[p] }

// MarshalText writes the form of String.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the form of String.
func (p *Phase) UnmarshalText(b []byte) error { return parseEnum(p, "phase", phases[:], b) }

// Job is a job that pacer schedules, as the cluster has it.
type Job struct {
	// Spec is the request. ID is the cluster's name of the job, unique among those that exist, and
	// Submit is ignored. With Steps 0 and Duration 0 the work is unknown, and Duration is set
	// to a day.
	Spec spec.Job
	// UID differs between jobs that have the same ID one after the other; "" = IDs are used once.
	UID       string
	Submitted time.Time
	Record    Record // zero = none yet; one that cannot be read is a Fault and zero
	Phase     Phase
	// Reason is the cluster's for not starting the job while Released, "" = unknown.
	Reason string
	// Slots are the devices the job holds: while Running or Stopping. nil = unknown, then
	// those of Record.RunSlots are assumed.
	Slots Slots
	// Started is when the present run began, zero = unknown or none.
	Started time.Time
	// Done is the number of steps completed, as the job reports; negative = unknown. The
	// controller then estimates it from the predicted speed.
	Done float64
	// PartlyDone says that some processes of the run have ended well while others run on: if they wait for one another, they
	// do so for ever.
	PartlyDone bool
	// ReleaseAfter is how long the job may be PartlyDone before it is stopped, 0 = no limit.
	ReleaseAfter time.Duration
	// Paused jobs are left as they are, but for ReleaseAfter; what they hold is usage.
	Paused bool
	// Version is that of the object read, for compare and swap; "" = the cluster has none.
	Version string
	// Ref is for the engine alone.
	Ref any
}

// Fault is an object of the cluster that cannot be used, such as a job with an impossible
// request. It is left as it is, reported once, and what it holds is usage.
type Fault struct {
	Object string // such as "job 17" or "node n3"
	Err    error
}

// Event is what the controller did to a job or found out about it.
type Event struct {
	At      time.Time
	Kind    EventKind
	Job     *Job // nil for an event of a node, of the policy or of the cluster
	Object  string
	Message string // the reason of the policy, or the error
	Warning bool
	DryRun  bool // only what would have been done
}

// EventKind is the kind of an Event, in the form of reasons of Kubernetes events.
type EventKind string

const (
	Decided      EventKind = "Decided"      // got another target; the message has plan, devices and reason
	StartedJob   EventKind = "Started"      // was released on its devices
	StoppedJob   EventKind = "Stopped"      // is stopped
	Delayed      EventKind = "Delayed"      // its restart waits for the limit of restarts per hour
	Waiting      EventKind = "Waiting"      // gets nothing, with the first reason of the policy; without a reason of a dry run only
	Lost         EventKind = "Lost"         // stopped without a decision, such as when its node went down
	PartlyDone   EventKind = "PartlyDone"   // some of its processes have ended well, and others run on
	Faulty       EventKind = "Faulty"       // an object that cannot be used
	Refused      EventKind = "Refused"      // a decision that scheduler.Check refuses; targets stay
	Refitted     EventKind = "Refitted"     // the performance models changed, and the policy decides anew
	PolicyFailed EventKind = "PolicyFailed" // the policy has an error; targets stay
	WriteFailed  EventKind = "WriteFailed"  // a write that is tried again
)
