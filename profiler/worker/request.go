package worker

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Version is the format of request and result files. A worker reads and writes only its own version, since
// program and files belong to one build.
const Version = 1

// Device kinds that a worker can train on.
const (
	CUDA = "cuda"
	CPU  = "cpu"
)

// Request is the input of the worker for one point.
type Request struct {
	Version int         `json:"version"` // set by Write
	Config  spec.Config `json:"config"`
	Device  string      `json:"device"`  // CUDA or CPU
	Devices int         `json:"devices"` // devices of the plan, one process each unless a rank runs alone
	Seed    uint64      `json:"seed"`
	Compile bool        `json:"compile"` // torch.compile
	Threads int         `json:"threads"` // CPU threads per process, 0 = torch's default

	MinSteps int     `json:"min_steps"`  // smallest number of timed steps, >= 1
	MaxSteps int     `json:"max_steps"`  // largest number of timed steps, >= MinSteps
	MinTime  float64 `json:"min_time_s"` // minimum seconds of warm-up and of timed steps, even beyond MaxSteps, >= 0
	MaxTime  float64 `json:"max_time_s"` // seconds after which no timed step begins, > 0
	Interval float64 `json:"interval"`   // wanted half width of the median's 95 % interval, fraction of it, > 0
	Timeout  float64 `json:"timeout_s"`  // seconds a rank waits for the others, > 0
}

// Validate returns why the worker would refuse r.
func (r Request) Validate() error {
	switch {
	case r.Device != CUDA && r.Device != CPU:
		return fmt.Errorf("worker: device %q is not %s or %s", r.Device, CUDA, CPU)
	case r.Devices != r.Config.Plan.Devices():
		return fmt.Errorf("worker: %d devices, but plan %s needs %d", r.Devices, r.Config.Plan, r.Config.Plan.Devices())
	case r.Config.CheckAlone() != nil:
		return fmt.Errorf("worker: %w", r.Config.CheckAlone())
	case r.Threads < 0:
		return fmt.Errorf("worker: threads=%d is negative", r.Threads)
	case r.MinSteps < 1 || r.MaxSteps < r.MinSteps:
		return fmt.Errorf("worker: min_steps=%d and max_steps=%d, want 1 <= min_steps <= max_steps", r.MinSteps, r.MaxSteps)
	}
	if !(r.MinTime >= 0) || r.MinTime > r.MaxTime {
		return fmt.Errorf("worker: min_time_s=%g is not in [0, max_time_s=%g]", r.MinTime, r.MaxTime)
	}
	for name, v := range map[string]float64{"max_time_s": r.MaxTime, "interval": r.Interval, "timeout_s": r.Timeout} {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("worker: %s=%g is not positive and finite", name, v)
		}
	}
	return nil
}

// Write writes r to a file for the worker's --request.
func (r Request) Write(file string) error {
	if err := r.Validate(); err != nil {
		return err
	}
	r.Version = Version
	return writeJSON(file, r)
}

func writeJSON(file string, request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("worker: request: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}
