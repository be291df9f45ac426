package gavel

import "github.com/pacer-ml/pacer/scheduler"

// explain adds the owed and received time as the reason for every job with a changed
// grant, and for every waiting job with an explanation requested.
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

// because adds the reason why job i has grant g, or no grant if g is nil.
func (l *leases) because(s *scheduler.Snapshot, d *scheduler.Decision, i int, g *scheduler.Grant) {
	k, w := l.jobs[i], l.assigned[i].candidate
	if g == nil {
		share := 0.0
		for _, x := range k.x {
			share += x
		}
		d.Because(s, k.job, "its deficit is lower than that of the jobs that run: its share of the time is %.3g %%", 100*share)
		return
	}
	on, with := s.Cluster.Groups[k.candidates[w].Group].Accelerator.Name, ""
	if g.With != "" {
		with = " with job " + string(g.With)
	}
	if x := k.x[w]; x >= leastFraction {
		d.Because(s, k.job, "its share of the time on %s%s is %.3g %%: owed %.0f s, received %.0f s, both decayed", on, with, 100*x, k.owed[w], k.received[w])
		return
	}
	d.Because(s, k.job, "takes spare devices on %s%s, where it has no share of the time", on, with)
}
