package policy

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name:    "srtf",
		Doc:     "shortest remaining time first by the recorded duration, which nobody knows in advance, with parameter servers by that at the fastest numbers; preempts",
		Options: preemption,
		Servers: ServesToo,
		New:     func(d Deps) (scheduler.Policy, error) { return newSRTF(d, false) },
	})
	register(Info{
		Name:    "srtf-predicted",
		Doc:     "shortest remaining time first by steps left and believed speed, unknown ones last; preempts",
		Options: preemption,
		New:     func(d Deps) (scheduler.Policy, error) { return newSRTF(d, true) },
	})
}

func newSRTF(d Deps, predicted bool) (scheduler.Policy, error) {
	if d.Servers != nil {
		return newServedSRTF(d), nil
	}
	s := srtf{belief: newBelief(d), predicted: predicted}
	return Preemptive(d, Ranking{Key: s.key, Steady: true})
}

type srtf struct {
	belief    *belief
	predicted bool // recorded durations are not looked at
}

// key returns the seconds left, infinite where nothing tells. A recorded duration
// is for the work as a whole, so what is left of it is in proportion.
func (p srtf) key(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	if sec := j.Job.Duration.Seconds(); sec > 0 && !p.predicted {
		return j.Remaining * (sec / (j.Done + j.Remaining)), nil
	}
	w, err := p.belief.asSubmitted(ctx, s.Cluster, j.Job)
	if err != nil || w.blind {
		return math.Inf(1), err
	}
	return j.Remaining / w.options[0].rate, nil
}
