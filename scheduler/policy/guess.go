package policy

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// guess returns the ways to run a job the oracle knows nothing about: its own plan
// and size on every group that could hold it.
func (b *belief) guess(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (options []option, warning string, err error) {
	w, err := b.asSubmitted(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, "", err
	}
	rate := guessRate(s.Now, j)
	for gi := range s.Cluster.Groups {
		if g := &s.Cluster.Groups[gi]; accepts(j.Job, g) && j.Job.Devices <= g.MostDevices(j.Job.Host) {
			options = append(options, option{group: gi, plan: ownPlan(j.Job), devices: j.Job.Devices,
				shape: spec.Packed(j.Job.Devices, g.Room(j.Job.Host)), load: loadOf(j.Job.Devices, j.Job.Host, g), rate: rate})
		}
	}
	return options, w.warning, nil
}

// placeWay finds nodes for j in a way to run it. How a guess is laid out is for the
// placer to say.
func (b *belief) placeWay(free *scheduler.Inventory, j *spec.Job, way *option, guessed bool) *scheduler.Grant {
	if guessed {
		return b.placeBlindIn(free, way.group, j)
	}
	return b.placeOption(free, j, way)
}

// guessRate returns the steps/s of a job nothing is believed of: what its
// recorded duration says, else what makes it take as long again as it has been
// there.
func guessRate(now time.Duration, j *scheduler.JobState) float64 {
	if d := j.Job.Duration.Seconds(); d > 0 {
		return (j.Done + j.Remaining) / d
	}
	return j.Remaining / max((now-j.Job.Submit).Seconds(), j.StartCost.Seconds(), 1)
}

// alone returns how many seconds j takes from its submission to its end as submitted,
// should nobody be in its way: its start, a second at the least, and its steps at the
// speed believed.
func (b *belief) alone(ctx context.Context, c spec.Cluster, j *scheduler.JobState) (float64, error) {
	w, err := b.asSubmitted(ctx, c, j.Job)
	if err != nil {
		return 0, err
	}
	start := max(j.StartCost.Seconds(), 1)
	switch {
	case len(w.options) > 0:
		return start + (j.Done+j.Remaining)/w.options[0].rate, nil
	case j.Job.Duration > 0:
		return start + j.Job.Duration.Seconds(), nil
	}
	return start + 2*j.Attained/float64(j.Job.Devices), nil // as long again as it has run
}

// runTime returns how many seconds a job has to run at rate. The rate of one that
// is done may be a guess of 0.
func runTime(j *scheduler.JobState, rate float64) float64 {
	if j.Remaining == 0 {
		return 0
	}
	return j.Remaining / rate
}
