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
		d.Because(s, k.job, "has had more of its share of the time, %.3g %%, than others of theirs", 100*share)
		return
	}
	on := s.Cluster.Groups[k.ways[w].Group].Accelerator.Name
	if x := k.x[w]; x >= leastFraction {
		d.Because(s, k.job, "its share of the time on %s is %.3g %%: it is owed %.0f s there, and had %.0f s lately", on, 100*x, k.owed[w], k.got[w])
		return
	}
	d.Because(s, k.job, "takes what is left over on %s, where it has no share of the time", on)
}
