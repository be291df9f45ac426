package order

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

// SRTF is the registry entry of policy srtf.
var SRTF = policy.Info{
	Name:    "srtf",
	Doc:     "shortest remaining time first by the recorded duration, which a real cluster does not know; with parameter servers by the predicted time with the fastest numbers of replicas and servers; preempts",
	Options: preemption,
	Servers: policy.ServesToo,
	New:     func(d policy.Deps) (scheduler.Policy, error) { return newSRTF(d, false) },
}

// SRTFPredicted is the registry entry of policy srtf-predicted.
var SRTFPredicted = policy.Info{
	Name:    "srtf-predicted",
	Doc:     "shortest remaining time first by steps left and predicted speed, jobs without a prediction last; preempts",
	Options: preemption,
	New:     func(d policy.Deps) (scheduler.Policy, error) { return newSRTF(d, true) },
}

func newSRTF(d policy.Deps, predicted bool) (scheduler.Policy, error) {
	if d.Servers != nil {
		return paramserver.NewSRTF(d), nil
	}
	s := srtf{finder: candidate.NewFinder(d), predicted: predicted}
	return Preemptive(d, Ranking{Key: s.key, Steady: true})
}

type srtf struct {
	finder    *candidate.Finder
	predicted bool // ignore recorded durations
}

// key returns the remaining seconds, infinite if unknown. A recorded duration is that of
// the whole job, so it is scaled by the fraction of steps left.
func (p srtf) key(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	if sec := j.Job.Duration.Seconds(); sec > 0 && !p.predicted {
		return j.Remaining * (sec / (j.Done + j.Remaining)), nil
	}
	w, err := p.finder.AsSubmitted(ctx, s.Cluster, j.Job)
	if err != nil || w.Blind {
		return math.Inf(1), err
	}
	return j.Remaining / w.Configs[0].Rate, nil
}
