package hostspeed

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Truth is a truth in which the speed of jobs also depends on the CPUs and the memory that
// they are granted. Without a grant of either a job has the part of a node in proportion to
// its devices. A job on several nodes runs at the speed of the slowest. Jobs of models that
// are not in the speeds run as in the inner truth.
type Truth struct {
	sim.Truth
	Speeds scheduler.HostSpeeds
}

// StepsPerSec implements sim.Truth.
func (t Truth) StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	rate, err := t.Truth.StepsPerSec(ctx, j, g, group)
	return rate * t.relative(j, g, group), err
}

// relative returns the relative speed of j on g.
func (t Truth) relative(j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) float64 {
	slowest, devices := 1.0, g.Devices()
	part := scheduler.ProportionalHost(group)
	for i, s := range g.Slots {
		each := part
		if s.Host.MilliCPUs > 0 {
			each.MilliCPUs = s.Host.MilliCPUs / int64(max(s.Devices, 1))
		}
		if s.Host.Bytes > 0 {
			each.Bytes = s.Host.Bytes / int64(max(s.Devices, 1))
		}
		if v, ok := t.Speeds.Relative(j, devices, each); ok && (i == 0 || v < slowest) {
			slowest = v
		}
	}
	return slowest
}
