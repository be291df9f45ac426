package admission

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var loadOptions = []policy.Option{
	{Name: "x", Default: "1.2", Max: 1e6, Doc: "most devices that jobs in the system may request, as a multiple of those of the cluster"},
}

var loadRule = Info{
	Name:    "load",
	Doc:     "holds jobs, in order of arrival, while the jobs in the system request x times the cluster's devices (Blox, EuroSys 2024)",
	Options: loadOptions,
	New: func(d policy.Deps) (scheduler.Admission, error) {
		v := d.Values(loadOptions)
		return load{v.Float("x"), policy.VariantOf[Variant](d).Overshoot}, v.Err()
	},
}

// load keeps the queue short, so that policies preempt less.
type load struct {
	x         float64
	overshoot bool // the devices of the job itself do not count
}

// Admit admits j if all jobs, including j, request at most x times the cluster's devices.
// An empty system admits any job.
func (l load) Admit(_ context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	requested, limit := s.Requested(), l.x*float64(s.Cluster.Devices())
	demand := requested
	if !l.overshoot {
		demand += j.Devices
	}
	if requested == 0 || float64(demand) <= limit {
		return true, "", nil
	}
	return false, fmt.Sprintf("jobs in the system request %s, %d more would exceed %g", spec.Count(requested, "device"), j.Devices, limit), nil
}

// Line returns the same line for all jobs.
func (load) Line(*spec.Job) string { return "" }
