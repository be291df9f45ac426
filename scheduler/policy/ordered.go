package policy

import (
	"context"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
)

// Ordered returns a policy that starts waiting jobs in the order of compare,
// which must be total, at their own plan and device count, and never stops one
// that runs. With backfill a job that does not fit is passed over; without it,
// everything behind waits. Of the layouts allowed, and the groups where the job
// asks for none, a job takes the one it is believed fastest on among those with
// room.
func Ordered(d Deps, compare func(a, b *scheduler.JobState) int, backfill bool) scheduler.Policy {
	return &ordered{belief: newBelief(d), compare: compare, backfill: backfill}
}

type ordered struct {
	belief   *belief
	compare  func(a, b *scheduler.JobState) int
	backfill bool
}

func (p *ordered) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Keep: true}
	if len(s.Waiting) == 0 {
		return d, nil
	}
	waiting := slices.SortedFunc(slices.Values(s.Waiting), p.compare)
	free := s.Free()
	full := map[*ways]bool{} // what did not fit before does not fit now
	for _, j := range waiting {
		w, err := p.belief.asSubmitted(ctx, s.Cluster, j.Job)
		if err != nil {
			return d, err
		}
		var g *scheduler.Grant
		if !full[w] {
			g = p.belief.place(free, s.Cluster, j.Job, w)
		}
		if g == nil {
			full[w] = true
			if !p.backfill {
				break
			}
			continue
		}
		free.Take(g.Slots)
		d.Grants = append(d.Grants, g)
		if w.warning != "" {
			d.Warnings = append(d.Warnings, w.warning)
		}
	}
	return d, nil
}
