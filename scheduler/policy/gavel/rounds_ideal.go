package gavel

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/scheduler"
)

// ideal runs jobs at the fractions of the objective, as Gavel's simulator does with --ideal
// (figure 13). Decide, for callers that need grants, is that of rounds.
type ideal struct{ *rounds }

var _ scheduler.Fluid = ideal{}

func (p ideal) Shares(ctx context.Context, s *scheduler.Snapshot) ([]scheduler.TimeShare, []string, error) {
	if p.sync(s); !p.current(s) {
		if err := p.refresh(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	var out []scheduler.TimeShare
	idle := s.Idle()
	for i, j := range p.present {
		k := p.jobs[i]
		for w, x := range k.x {
			if x < leastFraction {
				continue
			}
			g := p.candidates.place(idle, j.Job, k.candidateSet, w)
			if g == nil {
				return nil, nil, fmt.Errorf("policy: job %s: the placement finds no %d devices of %s in an idle cluster",
					j.Job.ID, k.candidates[w].Devices, s.Cluster.Groups[k.candidates[w].Group].Accelerator.Name)
			}
			out = append(out, scheduler.TimeShare{Grant: g, Fraction: x})
		}
	}
	return out, p.warnings, nil
}
