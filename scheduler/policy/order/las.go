package order

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// LAS is the registry entry of policy las.
var LAS = policy.Info{
	Name:    "las",
	Doc:     "least attained service first, in device-seconds; needs no job durations; preempts",
	Options: lasOptions,
	New:     newLAS,
}

var lasOptions = append([]policy.Option{
	{Name: "quantum", Default: "300", Unit: "s", Max: 1e9, Doc: "seconds a job makes progress before it may be preempted"},
}, preemption...)

func newLAS(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(lasOptions)
	quantum := v.Duration("quantum")
	if err := v.Err(); err != nil {
		return nil, err
	}
	rules := policy.VariantOf[Variant](d)
	if rules.NoQuantum {
		quantum = 0
	}
	l := las{service: rules.Service}
	if l.service == nil {
		l.service = func(deviceSec float64, _ int) float64 { return deviceSec }
	}
	return Preemptive(d, Ranking{Key: l.key, Wake: l.wake, Quantum: quantum})
}

// las orders jobs by least attained service: Tiresias without its queues (Gu et al.,
// NSDI 2019, section 3.2).
type las struct {
	service func(deviceSec float64, devices int) float64
}

func (l las) key(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	return l.service(j.Attained, j.Job.Devices), nil
}

// pace is the service that r gains per second.
func (l las) pace(r *Entry) float64 {
	n := r.Grant.Devices()
	return l.service(float64(n), n)
}

// wake returns the first time at which the service of a running job exceeds that of the
// waiting job next above it.
func (l las) wake(s *scheduler.Snapshot, jobs iter.Seq[*Entry]) time.Duration {
	var waiting []float64
	for r := range jobs {
		if r.Grant == nil {
			waiting = append(waiting, r.Key)
		}
	}
	slices.Sort(waiting)
	at := policy.Never
	for r := range jobs {
		if r.Grant == nil {
			continue
		}
		if k, _ := slices.BinarySearch(waiting, r.Key); k < len(waiting) {
			at = min(at, policy.After(s.Now, (waiting[k]-r.Key)/l.pace(r)))
		}
	}
	return at
}
