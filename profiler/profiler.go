package profiler

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrSetup is wrapped by the errors of a Runner that cannot measure anything on this machine: a program is
// missing, or a device does not respond. The text says what to install or change.
var ErrSetup = errors.New("cannot measure here")

// Runner measures one point. A failure of the point itself (out of memory, a hang, a crash, NaN) is reported as
// the measurement's Outcome, with a reason. An error means that no point can be measured, or that ctx ended;
// the caller then stores nothing. In any case Run ends all processes that it started,
// except one for further points if the Runner is an io.Closer. The campaign closes it at its end; it can be used again.
//
// The measurement has c unchanged and belongs to the caller. The campaign sets Source, Origin and its own Env
// keys (see Env...). Run is called from one goroutine, or with Options.Parallel from several.
type Runner interface {
	Run(ctx context.Context, c spec.Config) (spec.Measurement, error)
}

// Sink stores measurements. When Put returns nil, they survive a crash. Put does not retain ms. *store.DB is a
// Sink.
type Sink interface {
	Put(ctx context.Context, ms ...spec.Measurement) error
}

// Executor runs a command somewhere, such as on this machine.
type Executor interface {
	// Run starts the command and returns when it and all its descendants have ended. Exit says how it ended. An
	// error means that the command could not be started; it wraps ErrSetup if a program is missing.
	Run(ctx context.Context, cmd Command) (Exit, error)
}

// Command is a command for an Executor.
type Command struct {
	Args    []string      // program and arguments
	Env     []string      // "KEY=value", added to the environment of this process
	Dir     string        // working directory, "" = this process's
	Timeout time.Duration // time after which all its processes are killed, 0 = none
	// Output, if set, gets the output, both streams, from one goroutine that ends before Run does. Its errors are
	// ignored.
	Output io.Writer
	// Started, if set, is called with the process group id once the command runs.
	Started func(pgid int)
}

// Exit describes how a Command ended.
type Exit struct {
	Code     int           // exit status; -1 if a signal ended it
	Signal   string        // name of that signal, such as "killed"
	TimedOut bool          // Command.Timeout passed
	Stray    int           // number of processes that outlived it and were killed
	Tail     string        // the end of its output, both streams, at most 8 KiB, valid UTF-8
	Wall     time.Duration // from start to the end of the last process
}

// Machine describes the devices that points are measured on.
type Machine struct {
	// Accelerator is the device type of every point, with its known properties.
	Accelerator spec.Accelerator
	Devices     []int // indices of the devices that may be used, as the runner counts them
	// PerNode is the number of devices per node.
	PerNode   int
	Nodes     int     // nodes like this one that a point may use together, 0 = only this one
	CPUs      int     // hardware threads of a node
	HostBytes float64 // memory of a node
	Link      spec.Link
	Framework string            // training stack, such as "pacer-torch"
	Env       map[string]string // facts recorded with every measurement: driver, versions
	// CPU means that the devices are processes on the machine's CPUs.
	CPU bool
	// Lacks returns the feature that the installed training stack lacks to run c, "" if none. nil = it lacks
	// nothing.
	Lacks func(c spec.Config) string `json:"-"`
	// Configs are all configurations that can be measured, if a table takes the place of a machine: see Tabled.
	Configs []spec.Config
}

// Tabled is an optional interface of Runners that look points up in a table. Configs returns the table's
// configurations, for Space.Measured; the caller must not change them. Run and Explain set Machine.Configs
// themselves; callers of Campaign.Points must do so.
type Tabled interface {
	Configs() []spec.Config
}

// Keys of Measurement.Env that campaigns and runners write.
const (
	EnvCampaign = "campaign"  // Campaign.Name
	EnvRun      = "run"       // label of the run, see Options.Label
	EnvPoint    = "point"     // number of the point in the run, from 1
	EnvWhy      = "why"       // why the point was chosen
	EnvWall     = "wall_s"    // seconds that the point held its devices, launch included; simulating Runners set it
	EnvNoise    = "noise"     // why the step times are less precise than wanted
	EnvLog      = "log"       // end of the log of a point with another outcome than OK
	EnvThrottle = "throttle"  // why clocks were reduced
	EnvShared   = "shared"    // other processes that used the devices
	EnvEnergy   = "energy_j"  // joules per step, all devices
	EnvWarning  = "warning"   // other warnings, separated by "; "
	EnvReserved = "reserved"  // peak bytes of the allocator, largest over devices
	EnvFLOPS    = "flop_rate" // achieved FLOP/s per device, by Model.TrainFLOPs
	EnvTorch    = "torch"     // version of PyTorch
	EnvPython   = "python"    // version
	EnvDriver   = "driver"    // version of the GPU driver
	EnvWarmUp   = "warmup_steps"
	EnvCompiled = "used_compile" // what was compiled
	// EnvCommand is the user's command with its placeholders, and EnvCommandHash identifies it with its variables and
	// settings.
	EnvCommand     = "command"
	EnvCommandHash = "command_hash"
	EnvTiming      = "timing" // origin of the step times of a command: "hook", or the format of its log
	// EnvLogDifference is how much longer the steps are by the log of a command than by the hook, as a fraction.
	EnvLogDifference = "log_difference"
	EnvHookShare     = "hook_share" // CPU time of the hook as a fraction of the step time
	// EnvHalfWidth is the half width of the 95 % interval of the median step time, as a fraction of
	// it.
	EnvHalfWidth = "half_width"
	// EnvPredicted is the step time that was predicted when the point was chosen, in seconds, and EnvPredictedHalf half
	// the width of the 90 % interval of its logarithm.
	EnvPredicted     = "predicted_s"
	EnvPredictedHalf = "predicted_half_width"
)
