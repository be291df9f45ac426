package study

import (
	"cmp"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// Need is the least time and resources that a job needs under any schedule.
type Need struct {
	SubmitSec float64
	AloneSec  float64 // from submission to completion with the cluster to itself
	AreaSec   float64 // device-seconds held until it is complete
}

// Bounds are lower bounds in seconds on every schedule of the jobs, even one that knows
// the future. Undefined without jobs.
type Bounds struct {
	Isolated report.Number `json:"isolated_jct_s"` // mean JCT of jobs running alone
	SRPT     report.Number `json:"srpt_jct_s"`     // mean JCT on one divisible pool of devices
	Area     report.Number `json:"area_s"`         // makespan by work over devices, with release times
	Longest  report.Number `json:"longest_s"`      // makespan by the latest end of a job running alone
}

// NoBounds are the bounds of jobs with unknown needs: all undefined.
func NoBounds() Bounds {
	return Bounds{report.Undefined(), report.Undefined(), report.Undefined(), report.Undefined()}
}

// JCT is the best bound on the mean JCT.
func (b Bounds) JCT() report.Number { return max(b.Isolated, b.SRPT) }

// Makespan is the best bound on the makespan.
func (b Bounds) Makespan() report.Number { return max(b.Area, b.Longest) }

// LowerBounds bounds the mean JCT and the makespan of every schedule of needs on a
// number of devices. The makespan begins at firstSec. Bounds:
//
// Isolated. A job completes no sooner than with the cluster to itself, so that
// the mean JCT is at least the mean of these times.
//
// SRPT. Let job j be released at r(j) and hold at least a(j) device-seconds
// until it is complete, on M devices. Consider the relaxation in which devices
// are one divisible pool, and a job may use any part of it and be preempted and
// moved for free. Every schedule is a schedule of the relaxation: let x(j,t) be
// the devices that j holds at time t; then x(j,t) = 0 before r(j), the sum of
// x(j,t) over j is at most M, and the integral of x(j,t) until completion is at
// least a(j). Between two successive releases, starts, stops and completions the
// x are constant. In such an interval, one machine of speed M can serve the jobs
// one after the other and give each the same device-seconds. Then no job has
// received less at the end of any interval, so none completes later, since
// completions are at ends of intervals. So the least sum of completion times on
// one preemptive machine with jobs of length a(j)/M and releases r(j) is at most
// that of the schedule. Shortest remaining processing time first attains it.
//
// Area. For every time r, the jobs released at or after r are served after r with
// at most M device-seconds per second. So the last completion is at r + A(r)/M or
// later, with A(r) the sum of a(j) over the jobs with r(j) >= r.
//
// Longest. The last completion is no sooner than that of any job alone.
//
// With several types of devices, a(j) is on the type that needs the fewest
// device-seconds and M counts all devices. The bounds still hold, but are looser.
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

// fluidSRPT returns the sum of the completion times, since submission, of jobs sorted by
// submission on one machine with speed device-seconds per second, which preempts by
// shortest remaining area.
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
