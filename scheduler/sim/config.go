package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

// Config is what a run is given. Cluster, Policy and Truth are required.
type Config struct {
	Cluster spec.Cluster
	Jobs    []spec.Job // in any order; not modified, ids must differ

	Policy     scheduler.Policy
	PolicyName string // for the Result and for errors
	Truth      Truth

	Admission scheduler.Admission // nil = every job that could ever run
	// Round lets the policy decide only at its multiples, at which all that
	// happened since is taken up; 0 = whenever something happens.
	Round time.Duration
	// Quirks are departures of another simulator that the engine is to have.
	Quirks compat.Quirks
	Costs  Costs // of starts and checkpoints; nil = none
	// CheckpointEvery is the time of training after which a running job writes a
	// checkpoint, again and again; 0 = none but when it is stopped or moved.
	CheckpointEvery time.Duration
	Speeds          Speeds   // of the nodes; nil = as the truth says
	Failures        Failures // of the nodes; nil = none
	// Sightings tell a belief that learns how fast jobs run; nil = nobody is told.
	Sightings *Sightings
	// Resume is the state to go on from; nil = nothing happened yet.
	Resume *Resume
	// Score tells which jobs the run is about: it ends when they are done. nil =
	// every job.
	Score func(spec.JobID) bool
	// Horizon ends the run at this simulated time whatever is left; 0 = 100
	// years, which is also the most.
	Horizon time.Duration
	// Audit recounts after every decision all that is kept up to date from one to
	// the next: for tests, since it costs as much as the cluster is large.
	Audit bool
	// Observe, if set, is told of everything that happens, in order.
	Observe func(Event)
	// Explain, if set, is told why some jobs fare as they do.
	Explain *Explain
}

// Explain asks for the reasons of what happens to some jobs.
type Explain struct {
	Jobs []spec.JobID
	// Tell is told of everything that happens to them, in order. Waits and Stays say
	// why a job waits or goes on as it is whenever that is another reason than
	// before, but for numbers in it.
	Tell func(Event)
}

// defaultHorizon is far beyond any trace, never is beyond every horizon, and the
// sum of two of them is well within time.Duration (292 years), so that times to
// come do not overflow.
const (
	defaultHorizon = 100 * 365 * 24 * time.Hour
	never          = defaultHorizon + 1
)

// Validate reports what makes c impossible to run. Jobs that cannot run are not
// among it: they are rejected when they are submitted.
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
		return errors.New("sim: no truth: nothing says how fast jobs run")
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
	if c.Quirks.Ticks && c.Round == 0 {
		return errors.New("sim: quirk ticks needs a round")
	}
	if r := c.Resume; r != nil && (r.At < 0 || r.At > defaultHorizon || c.Quirks.Barrier) {
		return fmt.Errorf("sim: going on from %v, want 0..%v, and no quirk barrier", r.At, defaultHorizon)
	}
	if c.Quirks.Barrier && c.Round == 0 {
		return errors.New("sim: quirk barrier needs a round")
	}
	if c.Quirks.Barrier && (c.CheckpointEvery > 0 || c.Speeds != nil || c.Failures != nil) {
		return errors.New("sim: with quirk barrier there are no checkpoints, node speeds and failures: leave them out, or turn it off")
	}
	if _, staged := c.Truth.(Staged); staged && c.Quirks.Barrier {
		return errors.New("sim: with quirk barrier jobs run at one speed, the truth knows of stages: turn the quirk off, or use another truth")
	}
	if c.Sightings != nil {
		if err := c.Sightings.Validate(); err != nil {
			return err
		}
		if c.Quirks.Barrier {
			return errors.New("sim: with quirk barrier jobs wait for each other, so that what is seen of them says little: turn it off, or use a belief that does not learn")
		}
	}
	if _, tuned := c.Truth.(Tuner); tuned && c.Round == 0 {
		return errors.New("sim: jobs that tune themselves do so from round to round: a round is missing")
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

// EventKind says what happened.
type EventKind uint8

const (
	Submitted EventKind = iota // entered the queue
	Held                       // made to wait outside by the admission rule, see Why
	Rejected                   // refused, see Why
	Started                    // got devices, having none
	Moved                      // changed plan, shape or nodes
	Stopped                    // lost its devices before it was done
	Completed
	Failed   // lost its devices, and what it had not saved, because a node went down
	NodeDown // Node went down; no job is named
	NodeUp   // Node was repaired; no job is named
	Shared   // holds what it held, in other company, or alone from now on: see its grant
	Waits    // was given nothing, see Why; told to Explain alone
	Stays    // goes on as it is, see Why; told to Explain alone
)

func (k EventKind) String() string {
	return [...]string{"submitted", "held", "rejected", "started", "moved", "stopped", "completed", "failed", "down", "up", "shared", "waits", "stays"}[k]
}

// Event is something that happened to a job or a node.
type Event struct {
	At    time.Duration
	Kind  EventKind
	Job   *spec.Job        // nil for NodeDown and NodeUp
	Node  int              // that went down or up, or took the job down (Failed)
	Grant *scheduler.Grant // what it holds now (Started, Moved, Shared, Stays) or lost (Stopped, Completed, Failed)
	Why   string           // the policy's reason, or that of a rejection; may be empty
}
