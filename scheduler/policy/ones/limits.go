package ones

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// look takes in what happened since the last decision, and returns the jobs inside
// by arrival.
func (p *ones) look(ctx context.Context, s *scheduler.Snapshot) ([]*onesJob, error) {
	for i := range s.Ended {
		p.lookAtEnded(&s.Ended[i])
	}
	groups := s.Free().Group
	var jobs []*onesJob
	for _, state := range s.Jobs() {
		j := p.jobs[state.Order]
		if j == nil {
			j = &onesJob{at: s.Now}
			p.jobs[state.Order] = j
		}
		j.JobState = state
		var err error
		if j.sizes, err = p.sizesOf(ctx, s.Cluster, state.Job); err != nil {
			return nil, err
		}
		j.limit = max(j.limit, j.sizes.least)
		if j.Grant != nil && j.Grant != j.grant {
			if err := p.placed(ctx, s, j, groups[j.Grant.Slots[0].Node]); err != nil {
				return nil, err
			}
		}
		p.advance(ctx, s.Now, j)
		jobs = append(jobs, j)
	}
	p.scaleLimits(s, jobs)
	for _, j := range jobs {
		p.predict(j)
	}
	return jobs, nil
}

// lookAtEnded learns from a job that ended, which since the last look got on as
// before.
func (p *ones) lookAtEnded(state *scheduler.JobState) {
	j := p.jobs[state.Order]
	delete(p.jobs, state.Order)
	if j != nil && len(j.records) > 0 && j.done > 0 && !p.known {
		p.progress.learn(j.records, j.passes()*state.Done/j.done)
	}
}

// passes returns how often j has processed as many samples as there are in an epoch
// at its own batch.
func (j *onesJob) passes() float64 { return j.samples / (j.every * float64(j.Job.Batch())) }

// placed takes in that j was given what it holds at the last look.
func (p *ones) placed(ctx context.Context, s *scheduler.Snapshot, j *onesJob, group int) error {
	j.grant, j.placedAt, j.ranFor, j.preempted = j.Grant, j.epochs, j.trained, false
	o, err := p.way(ctx, s.Cluster, j, group, j.Grant.Shape)
	if err != nil {
		return err
	}
	j.rate = 0
	if o != nil {
		j.rate = o.Rate * float64(o.Plan.GlobalBatch())
	}
	return nil
}

// advance brings j up to now.
func (p *ones) advance(ctx context.Context, now time.Duration, j *onesJob) {
	if j.Grant == nil {
		j.preempted = j.preempted || j.grant != nil
		j.grant = nil
	} else if took := now - max(j.at, j.Ready); took > 0 {
		j.trained += took
		j.samples += j.rate * took.Seconds()
	}
	j.at, j.done = now, j.Done
	if p.losses != nil {
		if l, ok := p.losses.Log(ctx, j.JobState); ok && l.Every > 0 {
			j.log(&l)
			return
		}
	}
	j.epochs = j.trained.Seconds() / onesUnlogged.Seconds()
}

// log takes in the losses of j.
func (j *onesJob) log(l *scheduler.Losses) {
	j.every, j.epochs = l.Every, j.Done/l.Every
	if n := len(l.Values); n > j.logged && j.samples > 0 {
		j.logged = n
		j.records = append(j.records, recordOf(l, j.Job.Batch(), j.passes()))
	}
}

// scaleLimits sets the limits of all jobs: one that has trained for a while with as
// many devices as it may have may have twice as many. The largest, if it has half of
// all devices n and has trained for longer than the median of jobs, T against Tm,
// may have
//
//	2n / (T/Tm + 1)
//
// of them, rounded up to an even number.
func (p *ones) scaleLimits(s *scheduler.Snapshot, jobs []*onesJob) {
	var largest *onesJob
	var times []time.Duration
	for _, j := range jobs {
		if j.trained > 0 {
			times = append(times, j.trained)
		}
		if j.Grant == nil {
			continue
		}
		n := j.Grant.Devices()
		if largest == nil || n > largest.Grant.Devices() {
			largest = j
		}
		if most := p.mostOf(j.Job); !j.young() && j.epochs-j.scaledAt >= onesYoung && j.limit < most && n >= j.reach() {
			j.limit, j.scaledAt = min(2*j.limit, most, s.Cluster.Devices()), j.epochs
		}
	}
	if largest == nil || 2*largest.Grant.Devices() < s.Cluster.Devices() {
		return
	}
	slices.Sort(times)
	if median := times[len(times)/2:]; len(median) > 0 && largest.trained > median[0] {
		n := int(2 * float64(largest.Grant.Devices()) / (largest.trained.Seconds()/median[0].Seconds() + 1))
		largest.limit = max(n+n%2, largest.sizes.least)
		largest.scaledAt = largest.epochs
	}
}

// reach returns the most devices that j can have in any group within its limit.
func (j *onesJob) reach() (n int) {
	for gi := range j.sizes.groups {
		n = max(n, j.sizes.fit(gi, j.limit))
	}
	return n
}

// predict says how many samples are left of j: as learnt from the jobs that ended, or
// where nothing is logged as many as there were.
func (p *ones) predict(j *onesJob) {
	j.left = 0
	switch {
	case p.known:
		j.left = j.Remaining * float64(max(j.Job.Batch(), 1))
	case j.young():
	case j.every == 0:
		j.left = j.samples
	case len(j.records) > 0:
		belief := p.progress.of(&j.records[len(j.records)-1])
		rho := belief.Mean()
		if p.sample {
			rho = belief.Rand()
		}
		j.left = min(j.samples*(1/(rho+1e-12)-1), math.MaxFloat32)
	}
}
