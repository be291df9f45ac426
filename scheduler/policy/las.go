package policy

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "las",
		Doc:  "least attained service first, in device-seconds, so that no job needs to say how long it is; preempts",
		Options: append([]Option{
			{Name: "quantum", Default: "300", Doc: "seconds a job makes progress before it has to make way"},
		}, preemption...),
		New: newLAS,
	})
}

func newLAS(d Deps) (scheduler.Policy, error) {
	quantum, err := d.seconds("quantum", 300*time.Second)
	if err != nil {
		return nil, err
	}
	if d.Quirks.NoQuantum {
		quantum = 0
	}
	l := las{perJob: d.Quirks.JobService}
	return Preemptive(d, Ranking{Key: l.key, Wake: l.wake, Quantum: quantum})
}

// las is the order of least attained service, of Tiresias without its queues (Gu
// et al., NSDI 2019, section 3.2).
type las struct {
	perJob bool // service is a job's seconds, not its device-seconds
}

func (l las) key(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	if l.perJob {
		return j.Attained / float64(j.Job.Devices), nil
	}
	return j.Attained, nil
}

// pace is how much service r gets per second.
func (l las) pace(r *Ranked) float64 {
	if l.perJob {
		return 1
	}
	return float64(r.Grant.Devices())
}

// wake returns when the first running job will have passed the next waiting one.
func (l las) wake(s *scheduler.Snapshot, jobs iter.Seq[*Ranked]) time.Duration {
	var waiting []float64
	for r := range jobs {
		if r.Grant == nil {
			waiting = append(waiting, r.Key)
		}
	}
	slices.Sort(waiting)
	at := never
	for r := range jobs {
		if r.Grant == nil {
			continue
		}
		if k, _ := slices.BinarySearch(waiting, r.Key); k < len(waiting) {
			at = min(at, after(s.Now, (waiting[k]-r.Key)/l.pace(r)))
		}
	}
	return at
}

// century is as long as any run: sim bounds their horizon.
const century = 100 * 365 * 24 * time.Hour

// after returns the time so many seconds after now, to the next nanosecond; at
// most a century after.
func after(now time.Duration, sec float64) time.Duration {
	if ns := math.Ceil(sec * 1e9); ns < float64(century) {
		return now + time.Duration(ns)
	}
	return now + century
}
