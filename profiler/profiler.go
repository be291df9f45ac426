package profiler

import (
	"context"
	"errors"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrSetup is wrapped by the errors of a Runner that cannot measure anything
// here: a program is missing, a device does not answer. The text says what to
// install or change.
var ErrSetup = errors.New("cannot measure here")

// Runner measures one point. Whatever becomes of the point itself (out of
// memory, a hang, a crash, NaN) is the measurement's Outcome, with the reason;
// an error means that no point can be measured, or that ctx ended, and then
// nothing is to be recorded. No process is left behind in any case.
//
// The measurement carries c unchanged. Source, Origin and the Env keys of a
// campaign (see Env...) are the campaign's to set.
type Runner interface {
	Run(ctx context.Context, c spec.Config) (spec.Measurement, error)
}

// Sink keeps measurements. When Put returns nil they survive a crash.
// *store.DB is one.
type Sink interface {
	Put(ctx context.Context, ms ...spec.Measurement) error
}

// Executor runs a command somewhere: on this machine, later by Slurm or
// Kubernetes.
type Executor interface {
	// Run starts the command and returns when neither it nor any process it
	// started is alive any more. An error means that it could not be started
	// (it wraps ErrSetup when a program is missing); how it ended is in Exit.
	Run(ctx context.Context, cmd Command) (Exit, error)
}

// Command is what an Executor runs.
type Command struct {
	Args    []string      // program and arguments
	Env     []string      // "KEY=value", besides the environment of this process
	Dir     string        // working directory, "" = this process's
	Timeout time.Duration // after which everything it started is killed, 0 = none
	// Started, if set, is called with the id of the process group once it runs.
	Started func(pgid int)
}

// Exit is how a Command ended.
type Exit struct {
	Code     int           // exit status; -1 when a signal ended it
	Signal   string        // name of that signal, such as "killed"
	TimedOut bool          // Command.Timeout passed
	Stray    int           // processes it left behind, which were killed
	Tail     string        // the end of its output, both streams, at most 8 KiB, valid UTF-8
	Wall     time.Duration // from start to the end of the last process
}

// Machine is what points may be measured on.
type Machine struct {
	// Accelerator is the device type of every point, with the figures known of it.
	Accelerator spec.Accelerator
	Devices     []int // device indices that may be used, as the runner counts them
	// PerNode is how many devices one node has; a machine here is one node.
	PerNode   int
	CPUs      int     // hardware threads of a node
	HostBytes float64 // memory of a node
	Link      spec.Link
	Framework string            // training stack, such as "pacer-torch"
	Env       map[string]string // facts recorded with every measurement: driver, versions
	// CPU says that the devices are processes on the machine's CPUs.
	CPU bool
	// Lacks returns what the training stack installed here lacks to run c, ""
	// if nothing. A nil Lacks means that it runs everything.
	Lacks func(c spec.Config) string
	// Configs are all that can be measured where a table stands in for a
	// machine: see Tabled.
	Configs []spec.Config
}

// Tabled is an optional interface of Runners that answer from a table: Configs
// are the configurations in it, which Space.Measured takes. Run and Explain put
// them into Machine.Configs themselves; callers of Campaign.Points do so.
type Tabled interface {
	Configs() []spec.Config
}

// Keys of Measurement.Env that campaigns and runners write.
const (
	EnvCampaign = "campaign"  // Campaign.Name
	EnvRun      = "run"       // label of the run, see Options.Label
	EnvPoint    = "point"     // number of the point in the run, from 1
	EnvWhy      = "why"       // why the point was chosen
	EnvWall     = "wall_s"    // seconds the point held its devices, launch included; a Runner that only plays them says so here
	EnvNoise    = "noise"     // why the step times are not as sharp as asked
	EnvLog      = "log"       // end of the log of a point that is not OK
	EnvThrottle = "throttle"  // clocks were held back, and why
	EnvShared   = "shared"    // who else used the devices
	EnvEnergy   = "energy_j"  // joules per step, all devices
	EnvWarning  = "warning"   // anything else worth seeing, "; " between several
	EnvReserved = "reserved"  // bytes the allocator held at most, largest over devices
	EnvFLOPS    = "flop_rate" // achieved FLOP/s per device, by Model.TrainFLOPs
	// EnvHalfWidth is the half width of the 95 % interval of the median step
	// time, as a fraction of it.
	EnvHalfWidth = "half_width"
)
