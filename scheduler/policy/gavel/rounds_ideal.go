package gavel

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/scheduler"
)

// ideal is rounds without rounds: the fractions of its objective themselves, as
// Gavel's simulator integrates them with --ideal (Narayanan et al., OSDI 2020,
// figure 13). Where grants are needed it decides as rounds do.
type ideal struct{ *rounds }

var _ scheduler.Fluid = ideal{}

func (p ideal) Shares(ctx context.Context, s *scheduler.Snapshot) ([]scheduler.TimeShare, []string, error) {
	if p.meet(s); !p.current(s) {
		if err := p.refresh(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	var out []scheduler.TimeShare
	idle := s.Idle()
	for i, j := range p.now {
		k := p.jobs[i]
		for w, x := range k.x {
			if x < leastFraction {
				continue
			}
			g := p.candidates.place(idle, j.Job, k.candidateSet, w)
			if g == nil {
				return nil, nil, fmt.Errorf("policy: job %s: the placement finds no %d devices of %s in an idle cluster",
					j.Job.ID, k.ways[w].Devices, s.Cluster.Groups[k.ways[w].Group].Accelerator.Name)
			}
			out = append(out, scheduler.TimeShare{Grant: g, Fraction: x})
		}
	}
	return out, p.warnings, nil
}
