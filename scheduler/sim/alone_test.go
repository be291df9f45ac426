package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// twoSpeeds runs jobs at 1 step/s on slow devices and 3 on fast ones. Other devices are
// an error.
type twoSpeeds struct{}

func (twoSpeeds) Steps(context.Context, *spec.Job) (float64, error) { return 120, nil }

func (twoSpeeds) StepsPerSec(_ context.Context, _ *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	switch group.Accelerator.Name {
	case "slow":
		return 1, nil
	case "fast":
		return 3, nil
	}
	return 0, errors.New("not known")
}

func TestTimeAlone(t *testing.T) {
	group := func(name string, nodes, devices int) spec.NodeGroup {
		return spec.NodeGroup{Count: nodes, Devices: devices, Accelerator: spec.Accelerator{Name: name}}
	}
	c := Config{Truth: twoSpeeds{}, Cluster: spec.Cluster{Groups: []spec.NodeGroup{group("slow", 2, 3), group("fast", 1, 2), group("odd", 1, 4)}}}
	r := &Result{}
	for _, want := range []struct {
		job    spec.Job
		alone  time.Duration
		usable int
	}{
		{spec.Job{ID: "any", Devices: 2}, 80 * time.Second, 12}, // (6*1 + 2*3) / 8 steps/s
		{spec.Job{ID: "slow", Devices: 2, Accelerator: "slow"}, 120 * time.Second, 6},
		{spec.Job{ID: "wide", Devices: 3}, 120 * time.Second, 12}, // too many for the fast ones
		{spec.Job{ID: "odd", Devices: 1, Accelerator: "odd"}, 0, 4},
		{spec.Job{ID: "huge", Devices: 100}, 0, 12},
		{spec.Job{ID: "none", Devices: 1, Accelerator: "none"}, 0, 0},
		{spec.Job{ID: "zero"}, 0, 12},
	} {
		r.Jobs = []JobRecord{{Job: want.job}}
		r.TimeAlone(context.Background(), c)
		if j := r.Jobs[0]; j.Alone != want.alone || j.Usable != want.usable {
			t.Errorf("job %s: %v alone, %d devices it may use, want %v and %d", want.job.ID, j.Alone, j.Usable, want.alone, want.usable)
		}
	}
}
