package study

import (
	"cmp"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// Need is the least a job can do with, whatever the schedule.
type Need struct {
	SubmitSec float64
	AloneSec  float64 // from submission to completion with the cluster to itself
	AreaSec   float64 // device-seconds held until it is complete
}

// Bounds are seconds that no schedule of the jobs can beat, not even one that
// knows the future. Undefined without jobs.
type Bounds struct {
	Isolated report.Number `json:"isolated_jct_s"` // on the mean JCT: each job alone
	SRPT     report.Number `json:"srpt_jct_s"`     // on the mean JCT: one divisible pool of devices
	Area     report.Number `json:"area_s"`         // on the makespan: work over devices, with release times
	Longest  report.Number `json:"longest_s"`      // on the makespan: the job that alone ends last
}

// NoBounds are those of jobs of which nothing is known.
func NoBounds() Bounds {
	return Bounds{report.Undefined(), report.Undefined(), report.Undefined(), report.Undefined()}
}

// JCT is the best bound on the mean JCT.
func (b Bounds) JCT() report.Number { return max(b.Isolated, b.SRPT) }

// Makespan is the best bound on the makespan.
func (b Bounds) Makespan() report.Number { return max(b.Area, b.Longest) }

// LowerBounds bounds the mean JCT and the makespan of every schedule of needs on
// so many devices. The makespan counts from firstSec on. Bounds:
//
// Isolated. A job completes no sooner than with the cluster to itself, so that
// the mean JCT is at least the mean of these times.
//
// SRPT. Let job j be released at r(j) and hold at least a(j) device-seconds
// until it is complete, on M devices. Consider the relaxation in which devices
// are one divisible pool, a job may use any part of it, even all, be stopped for
// free and go on elsewhere. Every schedule, rigid gangs or not, is a schedule of
// the relaxation: let x(j,t) be the devices j holds at time t; then x(j,t) = 0
// before r(j), the sum of x(j,t) over j is at most M, and the integral of x(j,t)
// until completion is at least a(j). Between two successive releases, starts,
// stops and completions the x are constant; there, one machine of speed M can
// serve the jobs one after the other and give each what it gets in that
// interval. Then no job has received less at the end of any interval, so none
// completes later, and completions lie at ends of intervals. So the least sum of
// completion times of one preemptive machine with jobs of length a(j)/M and
// releases r(j) is no more than that of the schedule, and shortest remaining
// processing time first attains it.
//
// Area. What is released at or after a time r, whichever, is served after r, at
// most M device-seconds each second: the last completion is at r + A(r)/M or
// later, A(r) the sum of a(j) over the jobs with r(j) >= r.
//
// Longest. The last completion is no sooner than that of any job alone.
//
// On clusters with several types of devices a(j) is on the type that needs the
// fewest device-seconds and M counts all devices; the bounds hold, less sharply.
//
// Source of the optimality of SRPT: Schrage, "A proof of the optimality of the
// shortest remaining processing time discipline", Operations Research 16(3),
// 1968. One fast machine as a relaxation of several: Eastman, Even and Isaacs,
// "Bounds for the optimal scheduling of n jobs on m processors", Management
// Science 11(2), 1964.
func LowerBounds(needs []Need, devices int, firstSec float64) Bounds {
	if len(needs) == 0 || devices < 1 {
		return NoBounds()
	}
	byRelease := slices.Clone(needs)
	slices.SortStableFunc(byRelease, func(a, b Need) int { return cmp.Compare(a.SubmitSec, b.SubmitSec) })
	n, m := float64(len(needs)), float64(devices)
	var alone, longest, area, last float64
	for i := len(byRelease) - 1; i >= 0; i-- {
		j := byRelease[i]
		alone += j.AloneSec
		longest = math.Max(longest, j.SubmitSec+j.AloneSec)
		area += j.AreaSec
		last = math.Max(last, j.SubmitSec+area/m)
	}
	return Bounds{
		Isolated: report.Number(alone / n), SRPT: report.Number(fluidSRPT(byRelease, m) / n),
		Area: report.Number(last - firstSec), Longest: report.Number(longest - firstSec),
	}
}

// fluidSRPT returns the sum of completion less submission times of jobs, by
// submission, on one machine that serves so many device-seconds a second, in
// the order of shortest remaining area, preemptively.
func fluidSRPT(jobs []Need, speed float64) float64 {
	left := heap.Heap[Need]{Less: func(a, b Need) bool { return a.AreaSec < b.AreaSec }}
	var now, sum float64
	for next := 0; next < len(jobs) || len(left.Items) > 0; {
		if len(left.Items) == 0 {
			now = math.Max(now, jobs[next].SubmitSec)
		}
		for ; next < len(jobs) && jobs[next].SubmitSec <= now; next++ {
			left.Push(jobs[next])
		}
		until := math.Inf(1)
		if next < len(jobs) {
			until = jobs[next].SubmitSec
		}
		if done := now + left.Items[0].AreaSec/speed; done <= until {
			now = done
			sum += now - left.Items[0].SubmitSec
			left.Pop()
			continue
		}
		left.Items[0].AreaSec -= (until - now) * speed // it stays the least
		now = until
	}
	return sum
}
