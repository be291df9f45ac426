package gavel

import (
	"cmp"
	"context"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var AlloX = policy.Info{
	Name:    "allox",
	Doc:     "assigns jobs to types of devices so that the sum of completion times is least; never preempts (Le et al., AlloX, EuroSys 2020)",
	Options: alloxOptions,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		v := d.Values(alloxOptions)
		alpha := v.Float("alpha")
		if err := v.Err(); err != nil {
			return nil, err
		}
		return &allox{candidates: newCandidates(d, false), alpha: alpha}, nil
	},
}

var alloxOptions = []policy.Option{
	{Name: "alpha", Default: "0.3", Max: 1, Doc: "part of the waiting jobs, the earliest, that are considered when there are more than free devices"},
}

// allox is for jobs of one device, as the paper's. Wider ones start before them,
// by arrival, on the fastest type with room.
type allox struct {
	candidates *candidates
	alpha      float64
}

func (p *allox) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Keep: true}
	free := s.Free()
	var narrow []Share
	for _, j := range s.Waiting {
		m, err := p.candidates.of(ctx, s.Cluster, j.Job)
		if err != nil {
			return d, err
		}
		if m.warning != "" {
			d.Warnings = append(d.Warnings, m.warning)
		}
		share := Share{State: j, candidateSet: m, Ways: m.ways}
		if j.Job.Devices == 1 && len(m.ways) > 0 {
			narrow = append(narrow, share)
			continue
		}
		if p.start(&d, free, &share, p.fastestFirst(&share)) {
			d.Because(s, j.Job.ID, "needs more than one device: starts by arrival, on the fastest type with room")
		}
	}
	for _, c := range p.choose(free, len(s.Cluster.Groups), narrow) {
		if p.start(&d, free, &narrow[c.job], []int{c.way}) {
			d.Because(s, narrow[c.job].State.Job.ID, "first in the queue of a free device, for the least sum of completion times")
		}
	}
	return d, nil
}

// start grants a job the first of some ways that has room, if one has.
func (p *allox) start(d *scheduler.Decision, free *scheduler.Inventory, j *Share, ways []int) bool {
	for _, k := range ways {
		if g := p.candidates.place(free, j.State.Job, j.candidateSet, k); g != nil {
			free.Take(g.Slots)
			d.Grants = append(d.Grants, g)
			return true
		}
	}
	return false
}

func (p *allox) fastestFirst(j *Share) []int {
	out := make([]int, len(j.Ways))
	for k := range out {
		out[k] = k
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(j.Ways[b].Rate, j.Ways[a].Rate) })
	return out
}

// choice is a job that starts now, and how.
type choice struct{ job, way int }

// slot is a place in the queue of a free device: the kth from its end, where a
// job's run time counts k times in the sum of completion times. Of devices of
// one type none has k jobs before all have k-1.
type slot struct{ group, device, k int }

// choose assigns jobs to the queues of the free devices and returns those that
// are first in theirs.
func (p *allox) choose(free *scheduler.Inventory, groups int, jobs []Share) []choice {
	var slots []slot
	devices := 0
	for g := range groups {
		devices += free.FreeIn(g)
	}
	jobs = jobs[:min(len(jobs), max(devices, int(p.alpha*float64(len(jobs)))))]
	if len(jobs) == 0 || devices == 0 {
		return nil
	}
	for g := range groups {
		n := free.FreeIn(g)
		for i := range n * ((len(jobs) + n - 1) / max(n, 1)) {
			slots = append(slots, slot{g, i % n, 1 + i/n})
		}
	}
	cost := make([][]float64, len(jobs))
	for i := range jobs {
		cost[i] = make([]float64, len(slots))
		for c, sl := range slots {
			cost[i][c] = float64(sl.k) * jobs[i].duration(sl.group)
		}
	}
	return first(jobs, slots, assign(cost))
}

// duration is how long the job would run on a group from now on, a thousand
// years where it does not.
func (s *Share) duration(group int) float64 {
	for _, w := range s.Ways {
		if w.Group == group {
			return s.State.Remaining / w.Rate
		}
	}
	return 3e10
}

// first returns the jobs that are first in the queue of a device.
func first(jobs []Share, slots []slot, column []int) []choice {
	head := map[[2]int]int{} // job by group and device
	for i, c := range column {
		at := [2]int{slots[c].group, slots[c].device}
		if h, ok := head[at]; !ok || slots[column[h]].k < slots[c].k {
			head[at] = i
		}
	}
	var out []choice
	for i, c := range column {
		if head[[2]int{slots[c].group, slots[c].device}] != i {
			continue
		}
		if k := slices.IndexFunc(jobs[i].Ways, func(w Way) bool { return w.Group == slots[c].group }); k >= 0 {
			out = append(out, choice{i, k})
		}
	}
	return out
}
