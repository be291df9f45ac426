package schedulertest

import (
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// work returns the steps of a job. A job with a duration has one step per second.
func (r *Recount) work(j *spec.Job) float64 {
	if j.Steps > 0 {
		return j.Steps
	}
	return j.Duration.Seconds()
}

// progress follows a job through its grant until now. It returns the steps done, those
// in the last checkpoint, and the time of that.
func (r *Recount) progress(l *life) (done, saved float64, savedAt time.Duration) {
	done, saved, savedAt = l.done, l.done, l.since
	cost := r.Costs(l.job)
	begin := l.since + cost.Launch
	if l.done > 0 {
		begin += cost.Restore
		if !l.failed {
			begin += cost.Checkpoint
		}
		if l.last.Plan.Normal() != l.grant.Plan.Normal() {
			begin += cost.Reshard
		}
	}
	trained := time.Duration(0)
	for t := begin; t < r.at; {
		if r.Every > 0 && trained == r.Every {
			t += cost.Checkpoint
			if trained = 0; t <= r.at {
				saved, savedAt = done, t
			}
			continue
		}
		speed, until := r.slowest(l.grant, t)
		p, paceEnds := l.at(t)
		dt := min(until, paceEnds, r.at) - t
		if r.Every > 0 {
			dt = min(dt, r.Every-trained)
		}
		done += r.rate(l.job, p) * speed * dt.Seconds()
		t += dt
		if trained += dt; trained == r.Every && r.Every > 0 && cost.Checkpoint == 0 {
			trained, saved, savedAt = 0, done, t
		}
	}
	return done, saved, savedAt
}

func (r *Recount) rate(j *spec.Job, p pace) float64 {
	if p.other != nil && r.Beside != nil {
		return r.Beside(j, p.grant, p.other)
	}
	return r.Rate(j, p.grant)
}

// slowest returns the speed of the slowest node of g at t, and the time of the next
// change of a node's speed.
func (r *Recount) slowest(g *scheduler.Grant, t time.Duration) (float64, time.Duration) {
	if r.Speeds == nil {
		return 1, math.MaxInt64
	}
	if r.speed == nil {
		for i := range r.Cluster.Nodes() {
			r.speed = append(r.speed, r.Speeds.Node(i))
		}
	}
	speed, until := math.Inf(1), time.Duration(math.MaxInt64)
	for _, s := range g.Slots {
		v, to := r.speed[s.Node](t)
		speed, until = min(speed, v), min(until, to)
	}
	return speed, until
}
