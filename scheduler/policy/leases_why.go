package policy

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// explain says of everybody whose devices d changes, and of who is asked for, what
// share of time decided.
func (l *leases) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	if !s.Reasons {
		return
	}
	at := make(map[spec.JobID]int, len(l.now))
	for i, j := range l.now {
		at[j.Job.ID] = i
	}
	for _, g := range d.Grants {
		l.because(s, d, at[g.Job], l.given[at[g.Job]].way)
	}
	for _, id := range d.Stops {
		l.because(s, d, at[id], -1)
	}
	for j := range d.Unexplained(s) {
		if j.Grant == nil {
			l.because(s, d, at[j.Job.ID], -1)
		}
	}
}

// because gives the reason why job i has a way now, -1 = none.
func (l *leases) because(s *scheduler.Snapshot, d *scheduler.Decision, i, w int) {
	k := l.jobs[i]
	if w < 0 {
		share := 0.0
		for _, x := range k.x {
			share += x
		}
		d.Because(s, k.job, "of its share of %.3g of the time it is owed less than others are", share)
		return
	}
	on := s.Cluster.Groups[k.ways[w].Group].Accelerator.Name
	if x := k.x[w]; x >= leastFraction {
		d.Because(s, k.job, "a share of %.3g of the time on %s: owed %.0f s, had %.0f s lately", x, on, k.owed[w], k.got[w])
		return
	}
	d.Because(s, k.job, "left over on %s, where it has no share of the time", on)
}
