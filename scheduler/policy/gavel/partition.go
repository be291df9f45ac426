package gavel

import "context"

// partitioned computes fractions by one program for each of a number of parts. A part has an
// equal share of the devices of every group and the jobs with the same number of arrival
// modulo the number of parts, so that a job stays in its part. Each program is smaller by the
// number of parts, and the fractions are close to those of the whole if a part has many jobs
// and no job needs much of the cluster.
//
// Source: Narayanan et al., "Solving Large-Scale Granular Resource Allocation Problems
// Efficiently with POP", SOSP 2021, by its abstract and a description of its method. Differs:
// the paper divides jobs at random, here by arrival. Parts are solved one after another.
func partitioned(f fractions, parts int) fractions {
	return func(ctx context.Context, s *Shares) error {
		n := min(parts, len(s.Jobs))
		members := make([][]int, n) // indices of jobs
		for i := range s.Jobs {
			k := s.Jobs[i].State.Order % n
			members[k] = append(members[k], i)
		}
		used := 0
		for _, m := range members {
			if len(m) > 0 {
				used++
			}
		}
		for _, m := range members {
			if len(m) == 0 {
				continue
			}
			if err := s.solvePart(ctx, f, m, used); err != nil {
				return err
			}
		}
		return nil
	}
}

// solvePart computes the fractions of some jobs on one of a number of equal parts of the
// devices.
func (s *Shares) solvePart(ctx context.Context, f fractions, jobs []int, parts int) error {
	part := *s
	part.Devices, part.Jobs, part.Warnings = make([]float64, len(s.Devices)), make([]Share, len(jobs)), nil
	for g, n := range s.Devices {
		part.Devices[g] = n / float64(parts)
	}
	for k, i := range jobs {
		part.Jobs[k] = s.Jobs[i]
	}
	err := f(ctx, &part)
	for k, i := range jobs {
		s.Jobs[i] = part.Jobs[k]
	}
	s.Warnings = append(s.Warnings, part.Warnings...)
	return err
}
