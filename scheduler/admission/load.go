package admission

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var loadOptions = []policy.Option{
	{Name: "x", Default: "1.2", Max: 1e6, Doc: "devices asked for inside, as a multiple of those there are"},
}

var loadRule = Info{
	Name:    "load",
	Doc:     "jobs wait outside, first come, first served, while those inside ask for x times the cluster (Blox, EuroSys 2024)",
	Options: loadOptions,
	New: func(d policy.Deps) (scheduler.Admission, error) {
		v := d.Values(loadOptions)
		return load{v.Float("x"), policy.VariantOf[Variant](d).Overshoot}, v.Err()
	},
}

// load keeps the queue short, so that the order inside has less to stop and to
// start again.
type load struct {
	x         float64
	overshoot bool // what the job itself asks for does not count
}

// Admit lets j in if all then inside ask for no more than x times the cluster. An
// empty system takes any job.
func (l load) Admit(_ context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	inside, limit := s.Asked(), l.x*float64(s.Cluster.Devices())
	demand := inside
	if !l.overshoot {
		demand += j.Devices
	}
	if inside == 0 || float64(demand) <= limit {
		return true, "", nil
	}
	return false, fmt.Sprintf("jobs inside ask for %s, %d more would be above %g", spec.Count(inside, "device"), j.Devices, limit), nil
}

// Line is the same for all.
func (load) Line(*spec.Job) string { return "" }
