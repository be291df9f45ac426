package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// job returns a finished job on one device.
func job(id string, submit, start, end time.Duration) sim.JobRecord {
	return sim.JobRecord{
		Job:   spec.Job{ID: spec.JobID(id), Submit: submit, Devices: 1},
		Start: start, End: end, Finished: true, Attained: (end - start).Seconds(),
	}
}

// result returns the run of n random jobs on the given devices, in submission order;
// with backfill, any job that fits starts.
func result(policy string, seed uint64, n, devices int, backfill bool) *sim.Result {
	r := &sim.Result{Policy: policy, Devices: devices}
	rng := rand.New(rand.NewPCG(seed, 1))
	var at time.Duration
	for i := range n {
		at += time.Duration(rng.ExpFloat64() * 200 * float64(time.Second))
		size := 1 << rng.IntN(5)
		r.Jobs = append(r.Jobs, sim.JobRecord{Job: spec.Job{
			ID: spec.JobID(fmt.Sprintf("job-%d", i)), Submit: at.Round(time.Millisecond), Devices: min(size, devices),
			Duration: time.Duration(math.Exp(rng.NormFloat64()*1.3+7) * float64(time.Second)).Round(time.Millisecond),
		}})
	}
	runQueue(r, backfill)
	return r
}

// runQueue fills in Start, End and Usage.
func runQueue(r *sim.Result, backfill bool) {
	free, next := r.Devices, 0
	var waiting, running []int
	for next < len(r.Jobs) || len(running) > 0 {
		now, last := time.Duration(math.MaxInt64), -1
		if next < len(r.Jobs) {
			now = r.Jobs[next].Job.Submit
		}
		for k, i := range running {
			if r.Jobs[i].End <= now {
				now, last = r.Jobs[i].End, k
			}
		}
		if last >= 0 {
			i := running[last]
			r.Jobs[i].Finished = true
			free += r.Jobs[i].Job.Devices
			running = append(running[:last], running[last+1:]...)
		} else {
			waiting = append(waiting, next)
			next++
		}
		var left []int
		for _, i := range waiting {
			j := &r.Jobs[i]
			if j.Job.Devices > free || len(left) > 0 && !backfill {
				left = append(left, i)
				continue
			}
			free -= j.Job.Devices
			j.Start, j.End = now, now+j.Job.Duration
			j.Attained = float64(j.Job.Devices) * j.Job.Duration.Seconds()
			running = append(running, i)
		}
		waiting = left
		r.Usage = append(r.Usage, sim.Usage{At: now, Held: r.Devices - free, Waiting: len(waiting)})
	}
}
