package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// MachineRequest is the input of the worker for micro-benchmarks: with one device those of the device, with more those of
// collectives.
type MachineRequest struct {
	Version int     `json:"version"`   // set by Write
	Device  string  `json:"device"`    // CUDA or CPU
	Devices int     `json:"devices"`   // processes, one per device, >= 1
	Threads int     `json:"threads"`   // CPU threads per process, 0 = torch's default
	Seconds float64 `json:"machine_s"` // wanted duration, > 0
	Timeout float64 `json:"timeout_s"` // seconds a rank waits for the others, > 0
}

// Write writes r to a file for the worker's --request.
func (r MachineRequest) Write(file string) error {
	for name, v := range map[string]float64{"machine_s": r.Seconds, "timeout_s": r.Timeout, "devices": float64(r.Devices)} {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("worker: %s=%g is not positive and finite", name, v)
		}
	}
	r.Version = Version
	return writeJSON(file, r)
}

// MachineResult is the output of the worker for micro-benchmarks.
type MachineResult struct {
	Version int                   `json:"version"`
	Torch   string                `json:"torch"`
	Rows    []spec.Microbenchmark `json:"rows"`
}

// ReadMachineResult reads the file that a worker with --out wrote. The error wraps ErrNoResult if there is none, or says why
// the worker failed or what is wrong with the file.
func ReadMachineResult(out string) (r MachineResult, err error) {
	text, err := os.ReadFile(out)
	if errors.Is(err, fs.ErrNotExist) {
		failed, err := ReadResult(out)
		if err == nil {
			err = fmt.Errorf("worker: %s: %s", failed.Outcome, failed.Reason)
		}
		return r, err
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	switch {
	case err != nil:
		return r, fmt.Errorf("worker: micro-benchmarks: %w", err)
	case r.Version != Version:
		return r, fmt.Errorf("worker: micro-benchmarks of version %d, want %d", r.Version, Version)
	}
	return r, nil
}
