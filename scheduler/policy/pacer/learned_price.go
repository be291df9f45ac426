package pacer

import (
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
)

// learnedPrice estimates what future arrivals make a device worth, from the device prices that prove the bound of each
// schedule. These prices are in jobs for the whole cluster: the completion time that all jobs would gain from one more
// second of it. A schedule foresees the prices that its own jobs cause. What devices turned out to be worth beyond that
// is due to jobs that arrived later. So
//
//	price = max(0, mean price over the last H seconds - mean of those prices that the schedule made H seconds ago foresaw)
//
// H is the mean time until a job of the last schedule ends, at most the time observed. Nothing is in seconds or in numbers
// of jobs: if all times are multiplied by a number, the price stays the same.
type learnedPrice struct {
	records []priceRecord // ascending by time
	longest float64       // the largest H so far, seconds
}

// priceRecord is the prices of one schedule.
type priceRecord struct {
	at       time.Duration
	now      float64          // price of the whole cluster at that time, until the next record
	horizon  float64          // H, seconds
	foreseen lookahead.Prices // prices from then on, by group
}

// maxPriceRecords bounds the records; beyond it, the oldest are forgotten.
const maxPriceRecords = 1 << 14

// observe records a schedule made at a time. A second schedule of the same instant replaces the first. A schedule in
// which some job can never run has no prices.
func (l *learnedPrice) observe(at time.Duration, c spec.Cluster, schedule *lookahead.Schedule) {
	if math.IsInf(schedule.Cost, 1) {
		return
	}
	if n := len(l.records); n > 0 && l.records[n-1].at == at {
		l.records = l.records[:n-1]
	}
	r := priceRecord{at: at, horizon: meanEnd(schedule), foreseen: lookahead.Prices{Times: schedule.Prices.Times, Devices: schedule.Prices.Devices}}
	for g, price := range r.foreseen.Devices {
		if len(price) > 0 {
			r.now += price[0] * float64(c.Groups[g].Devices*c.Groups[g].Count)
		}
	}
	l.records = append(l.records, r)
	l.longest = max(l.longest, r.horizon)
	// No horizon is expected to reach farther back than the longest.
	for len(l.records) > maxPriceRecords || len(l.records) > 1 && (at-l.records[1].at).Seconds() > l.longest {
		l.records = l.records[1:]
	}
}

// meanEnd returns the mean time in seconds until a job of a schedule ends, 0 without jobs.
func meanEnd(schedule *lookahead.Schedule) float64 {
	sum, jobs := 0.0, 0
	for i := range schedule.Assignments {
		if a := &schedule.Assignments[i]; a.Keep || a.Candidate >= 0 {
			sum, jobs = sum+a.End, jobs+1
		}
	}
	return sum / float64(max(jobs, 1))
}

// price returns the learned price of the whole cluster, in jobs; 0 before anything is known. It does not depend on
// schedules made now, so that a repeated decision is the same.
func (l *learnedPrice) price(now time.Duration, c spec.Cluster) float64 {
	last := len(l.records) - 1
	for last >= 0 && l.records[last].at >= now {
		last--
	}
	if last < 0 {
		return 0
	}
	age := func(i int) float64 { return (now - l.records[i].at).Seconds() }
	first, horizon := last, l.records[last].horizon
	for first > 0 && age(first) < horizon {
		first--
	}
	span := min(horizon, age(first))
	if span <= 0 {
		return 0
	}
	total, until := 0.0, 0.0 // the price times seconds, and how far back it is counted
	for i := last; i >= first; i-- {
		back := min(age(i), span)
		total += (back - until) * l.records[i].now
		until = back
	}
	price := total / span
	for g := range l.records[first].foreseen.Devices {
		price -= l.records[first].foreseen.Mean(g, 0, span) * float64(c.Groups[g].Devices*c.Groups[g].Count)
	}
	return max(0, price)
}
