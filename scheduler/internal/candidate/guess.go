package candidate

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Guess returns the candidates of a blind job: its own plan and size on every group with
// enough devices, at the speed of GuessRate.
func (f *Finder) Guess(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (options []Config, warning string, err error) {
	w, err := f.AsSubmitted(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, "", err
	}
	rate := GuessRate(s.Now, j)
	for gi := range s.Cluster.Groups {
		if g := &s.Cluster.Groups[gi]; j.Job.Accepts(g) && j.Job.Devices <= g.MostDevices(j.Job.Host) {
			options = append(options, Config{Group: gi, Plan: OwnPlan(j.Job), Devices: j.Job.Devices,
				Shape: spec.Packed(j.Job.Devices, g.Room(j.Job.Host)), Load: loadOf(j.Job.Devices, j.Job.Host, g), Rate: rate})
		}
	}
	return options, w.Warning, nil
}

// PlaceConfig returns a grant for j with candidate o, nil if it does not fit. The placer
// chooses the shape of a guess.
func (f *Finder) PlaceConfig(free *scheduler.Inventory, j *spec.Job, o *Config, guessed bool) *scheduler.Grant {
	if guessed {
		return f.PlaceBlindIn(free, o.Group, j)
	}
	return f.PlaceOption(free, j, o)
}

// GuessRate returns the steps/s of a blind job: those of its recorded duration, or else
// those with which its remaining time equals its time in the system so far.
func GuessRate(now time.Duration, j *scheduler.JobState) float64 {
	if d := j.Job.Duration.Seconds(); d > 0 {
		return (j.Done + j.Remaining) / d
	}
	return j.Remaining / max((now-j.Job.Submit).Seconds(), j.StartCost.Seconds(), 1)
}

// Alone returns the completion time of j, in seconds, as submitted and without other
// jobs: its start cost, at least a second, and its steps at the predicted speed.
func (f *Finder) Alone(ctx context.Context, c spec.Cluster, j *scheduler.JobState) (float64, error) {
	w, err := f.AsSubmitted(ctx, c, j.Job)
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
	return start + 2*j.Attained/float64(j.Job.Devices), nil // assumes that half of it is done
}

// RunTime returns the remaining seconds of a job at a rate. The rate may be 0 if nothing
// remains.
func RunTime(j *scheduler.JobState, rate float64) float64 {
	if j.Remaining == 0 {
		return 0
	}
	return j.Remaining / rate
}
