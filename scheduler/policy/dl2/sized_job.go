package dl2

import (
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy/optimus"
)

// sizedJob is a job without parameter servers; an increment leads to a larger size.
type sizedJob struct {
	*scheduler.JobState
	allocation *allocation
	sizes      [][]optimus.Size // by group
	home       int              // group it runs in, -1 = none
	least      float64          // predicted seconds per step on its smallest size
	share      float64          // dominant share of a device, see optimus.DominantShare
	group      int              // group of its devices
	at         int              // index of its size, -1 = none
	next       int              // index of the next faster size, -1 = none
}

func newSizedJob(alloc *allocation, j *scheduler.JobState, sizes [][]optimus.Size) *sizedJob {
	r := &sizedJob{JobState: j, allocation: alloc, sizes: sizes, home: -1, least: math.Inf(1), at: -1, share: 1}
	if j.Grant != nil {
		r.home = alloc.idle.Group[j.Grant.Slots[0].Node]
	}
	for _, s := range sizes {
		if len(s) > 0 {
			r.least = min(r.least, s[0].Sec)
		}
	}
	return r
}

// first returns the group for the first devices of r: its present group, or else the group
// with the fastest smallest size; -1 if none fits.
func (r *sizedJob) first() int {
	best := -1
	for gi, s := range r.sizes {
		switch {
		case len(s) == 0 || s[0].Devices > r.allocation.left[gi]:
		case gi == r.home:
			return gi
		case best < 0 || s[0].Sec < r.sizes[best][0].Sec:
			best = gi
		}
	}
	return best
}

func (r *sizedJob) allows(int) bool {
	if r.at < 0 {
		return r.first() >= 0
	}
	s := r.sizes[r.group]
	return r.next >= 0 && s[r.next].Devices-s[r.at].Devices <= r.allocation.left[r.group]
}

func (r *sizedJob) take(int) {
	if r.at < 0 {
		r.group, r.next = r.first(), 0
		r.share = optimus.DominantShare(&r.allocation.cluster.Groups[r.group], r.Job.Host)
	}
	s := r.sizes[r.group]
	r.allocation.left[r.group] -= s[r.next].Devices - r.devices()
	r.at = r.next
	r.next = slices.IndexFunc(s[r.at:], func(o optimus.Size) bool { return o.Sec < s[r.at].Sec })
	if r.next >= 0 {
		r.next += r.at
	}
}

// devices returns the number of devices of r.
func (r *sizedJob) devices() int {
	if r.at < 0 {
		return 0
	}
	return r.sizes[r.group][r.at].Devices
}

func (r *sizedJob) show(s *Seat) {
	s.Workers, s.Next, s.sec, s.gains = r.devices(), 0, 0, [3]float64{}
	s.share = r.share * float64(s.Workers) / float64(r.allocation.all)
	more := r.allows(0)
	switch {
	case r.at >= 0:
		sizes := r.sizes[r.group]
		if s.sec = sizes[r.at].Sec; more {
			s.Next, s.gains[0] = sizes[r.next].Devices, math.Log(s.sec/sizes[r.next].Sec)
		}
	case more:
		s.Next, s.gains[0] = r.sizes[r.first()][0].Devices, 1
	}
}
