package gavel

import (
	"cmp"
	"context"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// AlloX is the registry entry of policy allox.
var AlloX = policy.Info{
	Name:    "allox",
	Doc:     "assigns waiting jobs to device types so that the sum of completion times is minimal; never preempts (Le et al., AlloX, EuroSys 2020)",
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
	{Name: "alpha", Default: "0.3", Max: 1, Doc: "fraction of the waiting jobs, by arrival, that is considered; at least as many jobs as there are free devices"},
}

// allox schedules jobs of one device, as in the paper. Jobs of several devices start
// before them, by arrival, on the fastest type with room.
type allox struct {
	candidates *candidateTable
	alpha      float64
}

// Decide starts jobs on free devices. For the jobs of one device it solves the paper's
// assignment problem (AlloX, section 4.1): a min-cost bipartite matching of jobs to places
// in the queues of the free devices. It starts the first job of each queue. The matching
// is solved again when devices become free, so the rest of a queue is not kept.
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
		share := Share{State: j, candidateSet: m, Candidates: m.all}
		if j.Job.Devices == 1 && len(m.all) > 0 {
			narrow = append(narrow, share)
			continue
		}
		if p.start(&d, free, &share, p.fastestFirst(&share)) {
			d.Because(s, j.Job.ID, "needs more than one device: starts in order of arrival on the fastest type with room")
		}
	}
	for _, c := range p.choose(free, len(s.Cluster.Groups), narrow) {
		if p.start(&d, free, &narrow[c.job], []int{c.candidate}) {
			d.Because(s, narrow[c.job].State.Job.ID, "first in the queue of a free device in the assignment with the minimal sum of completion times")
		}
	}
	return d, nil
}

// start grants j the first of some candidates that fits, and reports whether one does.
func (p *allox) start(d *scheduler.Decision, free *scheduler.Inventory, j *Share, candidates []int) bool {
	for _, k := range candidates {
		if g := p.candidates.place(free, j.State.Job, j.candidateSet, k); g != nil {
			free.Take(g.Slots)
			d.Grants = append(d.Grants, g)
			return true
		}
	}
	return false
}

func (p *allox) fastestFirst(j *Share) []int {
	out := make([]int, len(j.Candidates))
	for k := range out {
		out[k] = k
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(j.Candidates[b].Rate, j.Candidates[a].Rate) })
	return out
}

// choice is a job that starts and the index of its candidate.
type choice struct{ job, candidate int }

// slot is the k-th place from the end of the queue of a free device. The run time of a
// job there counts k times in the sum of completion times, since k jobs wait for it.
type slot struct{ group, device, k int }

// choose assigns jobs to slots at minimal cost and returns the first job of each queue.
// The queues of devices of one type differ in length by one job at most.
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
	return queueHeads(jobs, slots, assign(cost))
}

// duration is the remaining run time of the job on a group, in seconds; a thousand years
// if it does not run there.
func (s *Share) duration(group int) float64 {
	for _, w := range s.Candidates {
		if w.Group == group {
			return s.State.Remaining / w.Rate
		}
	}
	return 3e10
}

// queueHeads returns the first job of the queue of each device.
func queueHeads(jobs []Share, slots []slot, column []int) []choice {
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
		if k := slices.IndexFunc(jobs[i].Candidates, func(w Candidate) bool { return w.Group == slots[c].group }); k >= 0 {
			out = append(out, choice{i, k})
		}
	}
	return out
}
