package gp

import "context"

// Task is a source of rows that a Hyper learns from: errors of the physics fitted without it, and the covariance of the
// physics (lower triangle, row by row).
type Task struct {
	At    []Point
	Off   []float64
	Trend []float64
}

// Rows that choose a kernel: of a task, and of a site. More are thinned evenly, since time is cubic in them.
const maxTaskRows, maxSearchRows = 80, 100

// Steps of a search: for shared kernels, and for that of a site.
const sharedSteps, siteSteps = 40, 8

// Learn returns the distribution of kernels of tasks; its mean is the best kernel of all together.
func Learn(ctx context.Context, tasks []Task) (*Hyper, error) {
	out := Untaught()
	var of []*Process
	for _, t := range tasks {
		if len(t.At) > 1 {
			r := &Process{At: t.At, Off: t.Off, ExtraSD: make([]float64, len(t.At)), trend: t.Trend, Kernel: out.Mean}
			of = append(of, r.thinned(maxTaskRows))
		}
	}
	if len(of) == 0 {
		return out, nil
	}
	wide := every(sharedSD)
	wide[scalars+NumDims+stackCat] = heldSD
	s := newSearch(&Hyper{Mean: out.Mean, SD: wide}, of...)
	if err := s.robust(ctx, sharedSteps); err != nil {
		return nil, err
	}
	out.Mean = of[0].Kernel
	return out, nil
}

// robust is run with additional noise of outliers.
func (s *search) robust(ctx context.Context, steps int) error {
	for range outlierRounds {
		if err := s.run(ctx, steps); err != nil {
			return err
		}
		for _, r := range s.of {
			if err := r.widen(ctx); err != nil {
				return err
			}
		}
	}
	return s.run(ctx, steps)
}
