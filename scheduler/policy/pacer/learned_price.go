package pacer

import (
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
	horizon float64       // H, seconds
	longest float64       // the largest H so far
}

// priceRecord is the prices of one schedule.
type priceRecord struct {
	at       time.Duration
	now      float64          // price of the whole cluster at that time, until the next record
	foreseen lookahead.Prices // prices from then on, by group
}

// observe records a schedule made at a time. A second schedule of the same instant replaces the first.
func (l *learnedPrice) observe(at time.Duration, c spec.Cluster, schedule *lookahead.Schedule) {
	if n := len(l.records); n > 0 && l.records[n-1].at == at {
		l.records = l.records[:n-1]
	}
	r := priceRecord{at: at, foreseen: schedule.Prices}
	for g, price := range r.foreseen.Devices {
		if len(price) > 0 {
			r.now += price[0] * float64(c.Groups[g].Devices*c.Groups[g].Count)
		}
	}
	l.records = append(l.records, r)
	sum, jobs := 0.0, 0
	for i := range schedule.Assignments {
		if a := &schedule.Assignments[i]; a.Keep || a.Candidate >= 0 {
			sum, jobs = sum+a.End, jobs+1
		}
	}
	l.horizon = sum / float64(max(jobs, 1))
	l.longest = max(l.longest, l.horizon)
	for len(l.records) > 1 && (at-l.records[1].at).Seconds() > l.longest {
		l.records = l.records[1:] // no horizon is expected to reach so far back
	}
}

// price returns the learned price of the whole cluster, in jobs; 0 before anything is known.
func (l *learnedPrice) price(now time.Duration, c spec.Cluster) float64 {
	first := len(l.records) - 1
	for first > 0 && (now-l.records[first].at).Seconds() < l.horizon {
		first--
	}
	if first < 0 {
		return 0
	}
	span := min(l.horizon, (now - l.records[first].at).Seconds())
	if span <= 0 {
		return 0
	}
	total, until := 0.0, 0.0 // the price times seconds, and how far back it is counted
	for i := len(l.records) - 1; i >= first; i-- {
		age := min((now - l.records[i].at).Seconds(), span)
		total += (age - until) * l.records[i].now
		until = age
	}
	price := total / span
	for g := range l.records[first].foreseen.Devices {
		price -= l.records[first].foreseen.Mean(g, 0, span) * float64(c.Groups[g].Devices*c.Groups[g].Count)
	}
	return max(0, price)
}
