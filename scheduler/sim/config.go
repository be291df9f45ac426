package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Config is the input of a run. Cluster, Policy and Truth are required.
type Config struct {
	Cluster spec.Cluster
	Jobs    []spec.Job // in any order; not modified, ids must differ

	Policy     scheduler.Policy
	PolicyName string // for the Result and for errors
	Truth      Truth

	Admission scheduler.Admission // nil = every job that could ever run
	// Round makes the policy decide only at its multiples. 0 = at every event.
	Round time.Duration
	Rules       // rules in which simulators differ; zero = Pacer's own
	Costs Costs // costs of starts and checkpoints; nil = none
	// CheckpointEvery is the training time between two checkpoints of a running job.
	// 0 = it writes one only when it is preempted or moved.
	CheckpointEvery time.Duration
	Speeds          Speeds   // relative speeds of nodes; nil = all 1
	Failures        Failures // failures of nodes; nil = none
	Maintenance     Failures // maintenance windows of nodes, known in advance; nil = none
	Spot            Failures // times at which the provider takes nodes back; nil = never
	// Others is what jobs outside the simulation occupy, ascending by time.
	Others []Occupation
	// Cancel has the times at which users cancel jobs that have not ended by then.
	Cancel map[spec.JobID]time.Duration
	// Observations feeds measured step times to a Learner; nil disables it.
	Observations *Observations
	// Resume is the state to resume from; nil = an idle cluster at time 0.
	Resume *Resume
	// Score selects the jobs that are scored: the run ends when they are done. nil =
	// every job.
	Score func(spec.JobID) bool
	// Horizon ends the run at this simulated time. 0 = 100 years, the most allowed.
	Horizon time.Duration
	// Audit recounts all incremental state after every decision. It is for tests: it
	// costs time proportional to the cluster.
	Audit bool
	// Observe, if set, receives all events in order.
	Observe func(Event)
	// Finished, if set, is called after each job that completes; it must be fast.
	Finished func()
	// Explain, if set, receives events and reasons of some jobs.
	Explain *Explain
}

// Explain requests reasons for some jobs.
type Explain struct {
	Jobs []spec.JobID
	// OnEvent receives all their events in order. Waits and Stays carry the reason why a
	// job waits or keeps its grant, each time that the reason changes in more than
	// numbers.
	OnEvent func(Event)
}

// defaultHorizon is far beyond any trace, never is beyond every horizon. The sum of
// two of them is within time.Duration (292 years), so that future times do not
// overflow.
const (
	defaultHorizon = 100 * 365 * 24 * time.Hour
	never          = defaultHorizon + 1
)

// Validate returns an error if c cannot run. Jobs that cannot run are no error: they
// are rejected when they are submitted.
func (c Config) Validate() error {
	if err := c.Cluster.Validate(); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	if a, ok := c.Admission.(scheduler.ClusterChecker); ok {
		if err := a.CheckCluster(c.Cluster); err != nil {
			return fmt.Errorf("sim: admission: %w", err)
		}
	}
	if c.Policy == nil {
		return errors.New("sim: no policy")
	}
	if c.Truth == nil {
		return errors.New("sim: no truth, which has the speeds of jobs")
	}
	if c.Horizon < 0 || c.Horizon > defaultHorizon {
		return fmt.Errorf("sim: horizon %v is not in 0..%v", c.Horizon, defaultHorizon)
	}
	if c.Round < 0 || c.Round > defaultHorizon {
		return fmt.Errorf("sim: round %v is not in 0..%v", c.Round, defaultHorizon)
	}
	if c.CheckpointEvery < 0 || c.CheckpointEvery > 0 && c.CheckpointEvery < time.Second {
		return fmt.Errorf("sim: a checkpoint every %v, want at least 1s, or 0 for none", c.CheckpointEvery)
	}
	if r := c.Resume; r != nil && (r.At < 0 || r.At > defaultHorizon) {
		return fmt.Errorf("sim: resume at %v, want 0..%v", r.At, defaultHorizon)
	}
	if err := c.validateRules(); err != nil {
		return err
	}
	if err := c.validateOthers(); err != nil {
		return err
	}
	if c.Observations != nil {
		if err := c.Observations.Validate(); err != nil {
			return err
		}
	}
	if _, tuned := c.Truth.(Tuner); tuned && c.Round == 0 {
		return errors.New("sim: jobs that tune themselves need a round")
	}
	if _, fluid := c.Policy.(scheduler.Fluid); fluid {
		if err := c.validateFluid(); err != nil {
			return err
		}
	}
	seen := make(map[spec.JobID]struct{}, len(c.Jobs))
	for i := range c.Jobs {
		id := c.Jobs[i].ID
		if _, dup := seen[id]; dup {
			return fmt.Errorf("sim: job id %q occurs twice", id)
		}
		seen[id] = struct{}{}
	}
	return nil
}

// EventKind is the kind of an Event.
type EventKind uint8

const (
	Submitted EventKind = iota // entered the queue
	Held                       // not admitted yet, see Why
	Rejected                   // refused, see Why
	Started                    // got devices, having none
	Moved                      // changed plan, shape or nodes
	Stopped                    // lost its devices before it was done
	Completed
	Failed    // lost its devices and unsaved progress because a node went down
	NodeDown  // Node went down; no job is named
	NodeUp    // Node was repaired; no job is named
	Shared    // keeps its devices, but begins or ends sharing them, see its grant
	Waits     // got no devices, see Why; for Explain only
	Stays     // keeps its grant, see Why; for Explain only
	Evicted   // lost its devices, but no progress: a node went down with notice, or its quota was reclaimed
	Cancelled // left the system, see Config.Cancel
)

func (k EventKind) String() string {
	return [...]string{"submitted", "held", "rejected", "started", "moved", "stopped", "completed", "failed", "down", "up", "shared", "waits", "stays", "evicted", "cancelled"}[k]
}

// Event is a change of a job or a node, or a reason for none.
type Event struct {
	At    time.Duration
	Kind  EventKind
	Job   *spec.Job        // nil for NodeDown and NodeUp
	Node  int              // node that went down or up; for Failed and Evicted, the one that the job lost; -1 = its quota
	Grant *scheduler.Grant // present grant (Started, Moved, Shared, Stays) or lost one (Stopped, Completed, Failed, Evicted, Cancelled)
	Why   string           // reason of the policy, of a rejection or of a planned outage, or empty
}
