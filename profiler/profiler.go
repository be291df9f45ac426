package profiler

import (
	"context"
	"errors"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrSetup is wrapped by the errors of a Runner that cannot measure anything here: a program is
// missing, a device does not answer. The text says what to install or change.
var ErrSetup = errors.New("cannot measure here")

// Runner measures one point. The fate of the point itself (out of memory, a hang, a crash, NaN) is
// the measurement's Outcome, with a reason. An error means that no point can be measured, or that
// ctx ended; nothing must be stored then. No process is left behind in any case.
//
// The measurement carries c unchanged. The campaign sets Source, Origin and its own Env keys (see
// Env...).
type Runner interface {
	Run(ctx context.Context, c spec.Config) (spec.Measurement, error)
}

// Sink stores measurements. When Put returns nil they survive a crash. *store.DB is one.
type Sink interface {
	Put(ctx context.Context, ms ...spec.Measurement) error
}

// Executor runs a command somewhere, such as on this machine.
type Executor interface {
	// Run starts the command and returns when it and all its descendants have ended. An error means
	// that it could not be started; it wraps ErrSetup if a program is missing. Exit says how it
	// ended.
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
	Stray    int           // processes it left behind, killed since
	Tail     string        // the end of its output, both streams, at most 8 KiB, valid UTF-8
	Wall     time.Duration // from start to the end of the last process
}

// Machine is what points may be measured on.
type Machine struct {
	// Accelerator is the device type of every point, with its known figures.
	Accelerator spec.Accelerator
	Devices     []int // device indices that may be used, as the runner counts them
	// PerNode is the number of devices per node; a machine is one node.
	PerNode   int
	CPUs      int     // hardware threads of a node
	HostBytes float64 // memory of a node
	Link      spec.Link
	Framework string            // training stack, such as "pacer-torch"
	Env       map[string]string // facts recorded with every measurement: driver, versions
	// CPU means that the devices are processes on the machine's CPUs.
	CPU bool
	// Lacks returns what the installed training stack lacks to run c, "" if nothing. nil = it lacks
	// nothing.
	Lacks func(c spec.Config) string
	// Configs are all configurations that can be measured if a table stands in for a machine: see
	// Tabled.
	Configs []spec.Config
}

// Tabled is an optional interface of Runners that answer from a table. Configs returns its
// configurations, for Space.Measured. Run and Explain set Machine.Configs themselves; callers of
// Campaign.Points must do so.
type Tabled interface {
	Configs() []spec.Config
}

// Keys of Measurement.Env that campaigns and runners write.
const (
	EnvCampaign = "campaign"  // Campaign.Name
	EnvRun      = "run"       // label of the run, see Options.Label
	EnvPoint    = "point"     // number of the point in the run, from 1
	EnvWhy      = "why"       // why the point was chosen
	EnvWall     = "wall_s"    // seconds the point held its devices, launch included; simulating Runners set it
	EnvNoise    = "noise"     // why the step times are less precise than wanted
	EnvLog      = "log"       // end of the log of a point with another outcome than OK
	EnvThrottle = "throttle"  // why clocks were reduced
	EnvShared   = "shared"    // other processes that used the devices
	EnvEnergy   = "energy_j"  // joules per step, all devices
	EnvWarning  = "warning"   // other warnings, separated by "; "
	EnvReserved = "reserved"  // peak bytes of the allocator, largest over devices
	EnvFLOPS    = "flop_rate" // achieved FLOP/s per device, by Model.TrainFLOPs
	// EnvHalfWidth is the half width of the 95 % interval of the median step time, as a fraction of
	// it.
	EnvHalfWidth = "half_width"
)
