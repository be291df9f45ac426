package optimus

import (
	"context"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

func n(replicas, servers int) paramserver.Counts {
	return paramserver.Counts{Replicas: replicas, Servers: servers}
}

// tableOracle predicts samples/s by numbers of replicas and servers.
type tableOracle struct {
	scheduler.Oracle
	samplesPerSec map[paramserver.Counts]float64 // others are not covered
}

func (o tableOracle) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	v, ok := o.samplesPerSec[n(c.Plan.DP, c.Plan.ParamServers)]
	if !ok {
		return spec.Prediction{}, perfmodel.ErrNotCovered
	}
	return spec.Prediction{Throughput: v}, nil
}

// listedSpace is a space of some numbers.
type listedSpace []paramserver.Counts

func (l listedSpace) Allows(c spec.Config) bool {
	return slices.Contains(l, n(c.Plan.DP, c.Plan.ParamServers))
}

// anySpace is a space without bounds.
type anySpace struct{}

func (anySpace) Allows(spec.Config) bool { return true }

// packingOf returns an empty packing of groups.
func packingOf(groups ...spec.NodeGroup) *paramserver.Packing {
	for i := range groups {
		groups[i].Accelerator.Name = string(rune('x' + i))
	}
	return paramserver.NewPacking(&scheduler.Snapshot{Cluster: spec.Cluster{Groups: groups}}, paramserver.NewSpeeds(policy.Deps{Servers: anySpace{}}))
}

// idleJob is a waiting job; each of its replicas and servers needs cpus CPUs.
func idleJob(devices, replica, server int) *paramserver.PackedJob {
	j := &spec.Job{ID: "j", GlobalBatch: 12, Devices: devices, Host: spec.Host{MilliCPUs: int64(1000 * replica)}, ServerHost: spec.Host{MilliCPUs: int64(1000 * server)}}
	j.Plan = j.ParamServerPlan(1, 1)
	return &paramserver.PackedJob{JobState: &scheduler.JobState{Job: j}, Group: -1}
}

// holdingJob is a job of one CPU device that holds at on node 0.
func holdingJob(at paramserver.Counts) *paramserver.PackedJob {
	t := idleJob(1, 2, 2)
	t.Grant = &scheduler.Grant{Job: t.Job.ID, Plan: t.Job.ParamServerPlan(at.Replicas, at.Servers), Shape: spec.NewShape(at.Replicas),
		Slots: []scheduler.Slot{{Devices: at.Replicas, Servers: at.Servers, Host: t.Job.HostFor(at.Replicas, at.Servers)}}}
	return t
}
