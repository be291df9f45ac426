package ones

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// observe updates the jobs with the events since the last decision, sets their limits and
// estimates their remaining samples. It returns the jobs in the system by arrival.
func (p *ones) observe(ctx context.Context, s *scheduler.Snapshot) ([]*trackedJob, error) {
	for i := range s.Ended {
		p.observeEnded(&s.Ended[i])
	}
	groups := s.Free().Group
	var jobs []*trackedJob
	for _, state := range s.Jobs() {
		j := p.jobs[state.Order]
		if j == nil {
			j = &trackedJob{observedAt: s.Now}
			p.jobs[state.Order] = j
		}
		j.JobState = state
		var err error
		if j.sizes, err = p.sizesOf(ctx, s.Cluster, state.Job); err != nil {
			return nil, err
		}
		j.limit = max(j.limit, j.sizes.least)
		if j.Grant != nil && j.Grant != j.grant {
			if err := p.recordGrant(ctx, s, j, groups[j.Grant.Slots[0].Node]); err != nil {
				return nil, err
			}
		}
		p.advance(ctx, s.Now, j)
		jobs = append(jobs, j)
	}
	p.scaleLimits(s, jobs)
	for _, j := range jobs {
		p.estimateRemaining(j)
	}
	return jobs, nil
}

// observeEnded trains the progress model with a job that ended. It assumes that the job's
// batch did not change since the last decision.
func (p *ones) observeEnded(state *scheduler.JobState) {
	j := p.jobs[state.Order]
	delete(p.jobs, state.Order)
	if j != nil && len(j.records) > 0 && j.done > 0 && !p.knownRemaining {
		p.progress.learn(j.records, j.passes()*state.Done/j.done)
	}
}

// passes returns the processed samples of j in epochs at its submitted batch.
func (j *trackedJob) passes() float64 { return j.samples / (j.stepsPerEpoch * float64(j.Job.Batch())) }

// recordGrant updates j for the grant it got in the last decision.
func (p *ones) recordGrant(ctx context.Context, s *scheduler.Snapshot, j *trackedJob, group int) error {
	j.grant, j.epochsAtGrant, j.trainedAtGrant, j.preempted = j.Grant, j.epochs, j.trained, false
	o, err := p.configFor(ctx, s.Cluster, j, group, j.Grant.Shape)
	if err != nil {
		return err
	}
	j.rate = 0
	if o != nil {
		j.rate = o.Rate * float64(o.Plan.GlobalBatch())
	}
	return nil
}

// advance updates the progress of j to now.
func (p *ones) advance(ctx context.Context, now time.Duration, j *trackedJob) {
	if j.Grant == nil {
		j.preempted = j.preempted || j.grant != nil
		j.grant = nil
	} else if took := now - max(j.observedAt, j.Ready); took > 0 {
		j.trained += took
		j.samples += j.rate * took.Seconds()
	}
	j.observedAt, j.done = now, j.Done
	if p.losses != nil {
		if l, ok := p.losses.Log(ctx, j.JobState); ok && l.Every > 0 {
			j.log(&l)
			return
		}
	}
	j.epochs = j.trained.Seconds() / unloggedEpoch.Seconds()
}

// log adds the losses of j.
func (j *trackedJob) log(l *scheduler.Losses) {
	j.stepsPerEpoch, j.epochs = l.Every, j.Done/l.Every
	if n := len(l.Values); n > j.logged && j.samples > 0 {
		j.logged = n
		j.records = append(j.records, recordOf(l, j.Job.Batch(), j.passes()))
	}
}

// scaleLimits sets the limits of all jobs. The limit doubles once a job has trained
// youngEpochs epochs at its limit. The limit of the largest job falls if it has at least
// half of the devices and has trained longer than the median job:
//
//	2n / (T/Tm + 1), rounded up to an even number
//
//	n   its devices
//	T   its training time
//	Tm  median training time of the jobs
func (p *ones) scaleLimits(s *scheduler.Snapshot, jobs []*trackedJob) {
	var largest *trackedJob
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
		if most := p.maxDevices(j.Job); !j.young() && j.epochs-j.scaledAt >= youngEpochs && j.limit < most && n >= j.reach() {
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

// reach returns the largest size of j within its limit in any group.
func (j *trackedJob) reach() (n int) {
	for gi := range j.sizes.groups {
		n = max(n, j.sizes.fit(gi, j.limit))
	}
	return n
}

// estimateRemaining sets the remaining samples of j by the progress model, or to the samples
// processed so far if j logs no losses. It is 0 for young jobs.
func (p *ones) estimateRemaining(j *trackedJob) {
	j.left = 0
	switch {
	case p.knownRemaining:
		j.left = j.Remaining * float64(max(j.Job.Batch(), 1))
	case j.young():
	case j.stepsPerEpoch == 0:
		j.left = j.samples
	case len(j.records) > 0:
		distribution := p.progress.of(&j.records[len(j.records)-1])
		rho := distribution.Mean()
		if p.sample {
			rho = distribution.Rand()
		}
		j.left = min(j.samples*(1/(rho+1e-12)-1), math.MaxFloat32)
	}
}
