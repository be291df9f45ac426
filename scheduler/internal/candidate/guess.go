package candidate

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Guess returns the ways to run a job the oracle knows nothing about: its own plan
// and size on every group that could hold it.
func (b *Belief) Guess(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (options []Config, warning string, err error) {
	w, err := b.AsSubmitted(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, "", err
	}
	rate := GuessRate(s.Now, j)
	for gi := range s.Cluster.Groups {
		if g := &s.Cluster.Groups[gi]; Accepts(j.Job, g) && j.Job.Devices <= g.MostDevices(j.Job.Host) {
			options = append(options, Config{Group: gi, Plan: OwnPlan(j.Job), Devices: j.Job.Devices,
				Shape: spec.Packed(j.Job.Devices, g.Room(j.Job.Host)), Load: loadOf(j.Job.Devices, j.Job.Host, g), Rate: rate})
		}
	}
	return options, w.Warning, nil
}

// PlaceWay finds nodes for j in a way to run it. How a guess is laid out is for the
// placer to say.
func (b *Belief) PlaceWay(free *scheduler.Inventory, j *spec.Job, way *Config, guessed bool) *scheduler.Grant {
	if guessed {
		return b.PlaceBlindIn(free, way.Group, j)
	}
	return b.PlaceOption(free, j, way)
}

// GuessRate returns the steps/s of a job nothing is believed of: what its
// recorded duration says, else what makes it take as long again as it has been
// there.
func GuessRate(now time.Duration, j *scheduler.JobState) float64 {
	if d := j.Job.Duration.Seconds(); d > 0 {
		return (j.Done + j.Remaining) / d
	}
	return j.Remaining / max((now-j.Job.Submit).Seconds(), j.StartCost.Seconds(), 1)
}

// Alone returns how many seconds j takes from its submission to its end as submitted,
// without other jobs: its start, a second at least, and its steps at the predicted
// speed.
func (b *Belief) Alone(ctx context.Context, c spec.Cluster, j *scheduler.JobState) (float64, error) {
	w, err := b.AsSubmitted(ctx, c, j.Job)
	if err != nil {
		return 0, err
	}
	start := max(j.StartCost.Seconds(), 1)
	switch {
	case len(w.Configs) > 0:
		return start + (j.Done+j.Remaining)/w.Configs[0].Rate, nil
	case j.Job.Duration > 0:
		return start + j.Job.Duration.Seconds(), nil
	}
	return start + 2*j.Attained/float64(j.Job.Devices), nil // as long again as it has run
}

// RunTime returns how many seconds a job has to run at rate. The rate of one that
// is done may be a guess of 0.
func RunTime(j *scheduler.JobState, rate float64) float64 {
	if j.Remaining == 0 {
		return 0
	}
	return j.Remaining / rate
}
