package gavel

import "github.com/pacer-ml/pacer/scheduler"

// explain gives the share of time that decided, for every job whose devices d changes
// and every job whose reason is asked for.
func (l *leases) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	if !s.Reasons {
		return
	}
	for _, g := range d.Grants {
		l.because(s, d, l.index[g.Job], g)
	}
	for _, id := range d.Stops {
		l.because(s, d, l.index[id], nil)
	}
	for j := range d.Unexplained(s) {
		if j.Grant == nil {
			l.because(s, d, l.index[j.Job.ID], nil)
		}
	}
}

// because gives the reason why job i has a grant now; nil = none.
func (l *leases) because(s *scheduler.Snapshot, d *scheduler.Decision, i int, g *scheduler.Grant) {
	k, w := l.jobs[i], l.given[i].way
	if g == nil {
		share := 0.0
		for _, x := range k.x {
			share += x
		}
		d.Because(s, k.job, "has received more of its share of the time, %.3g %%, than the other jobs of theirs", 100*share)
		return
	}
	on, with := s.Cluster.Groups[k.ways[w].Group].Accelerator.Name, ""
	if g.With != "" {
		with = " with job " + string(g.With)
	}
	if x := k.x[w]; x >= leastFraction {
		d.Because(s, k.job, "its share of the time on %s%s is %.3g %%: it is owed %.0f s there, and received %.0f s lately", on, with, 100*x, k.owed[w], k.received[w])
		return
	}
	d.Because(s, k.job, "takes devices that are left on %s%s, where it has no share of the time", on, with)
}
