package optimus

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/loss"
)

// convergence estimates the remaining steps of a job from its training loss and from
// finished jobs of its kind.
//
// Source: Peng et al., Optimus, EuroSys 2018, section 3.1. The estimates without a fit, the
// mean of finished jobs of the kind and else 20 logging intervals, are from the code
// pengyanghua/optimus@8c43920. There the mean has priority over a fit. Here the fit has,
// because jobs of a kind may have different lengths.
type convergence struct {
	log  scheduler.LossLog // nil = jobs log no losses
	fits map[spec.JobID]*fittedLoss
	done map[candidate.Kind]finishedSteps
	at   time.Duration // of the last snapshot
}

// fittedLoss is a fit to the losses of a job.
type fittedLoss struct {
	losses    int
	intervals float64 // logging intervals until convergence, 0 = no fit
}

// finishedSteps is a sum over finished jobs.
type finishedSteps struct {
	steps float64
	jobs  int
}

const (
	// youngLosses is the number of losses needed for a fit.
	youngLosses = 10
	// refitGrowth is the growth of the number of losses after which a job is fitted again.
	refitGrowth = 1.1
	// maxGrowth bounds the estimated total of a job as a multiple of its present steps: the
	// fit of a flat curve may converge at any time.
	maxGrowth = 10
	// unknownIntervals is the estimate of remaining logging intervals without a fit.
	unknownIntervals = 20
)

func newConvergence(log scheduler.LossLog) *convergence {
	return &convergence{log: log, fits: map[spec.JobID]*fittedLoss{}, done: map[candidate.Kind]finishedSteps{}, at: -1}
}

// observe adds the jobs that have finished.
func (c *convergence) observe(s *scheduler.Snapshot) {
	if s.Now <= c.at {
		return
	}
	c.at = s.Now
	for i := range s.Ended {
		j := &s.Ended[i]
		delete(c.fits, j.Job.ID)
		t := c.done[candidate.KindOf(j.Job)]
		c.done[candidate.KindOf(j.Job)] = finishedSteps{t.steps + j.Done, t.jobs + 1}
	}
}

// left returns the estimated remaining steps of j, and whether j is young: the estimate is
// not from a fit to its own losses.
func (c *convergence) left(ctx context.Context, j *scheduler.JobState) (steps float64, young bool) {
	var losses scheduler.Losses
	logged := false
	if c.log != nil {
		losses, logged = c.log.Log(ctx, j)
	}
	if logged && len(losses.Values) >= youngLosses {
		if f := c.fit(j.Job.ID, &losses); f.intervals > 0 {
			return max(f.intervals*losses.Every-j.Done, losses.Every), false
		}
	}
	least := max(losses.Every, 1)
	if t := c.done[candidate.KindOf(j.Job)]; t.jobs > 0 {
		return max(t.steps/float64(t.jobs)-j.Done, least), true
	}
	if logged {
		return unknownIntervals * losses.Every, true
	}
	return max(j.Done, least), true // as many as it has done
}

// fit returns the fit to the losses of a job, recomputed after growth by refitGrowth.
func (c *convergence) fit(id spec.JobID, l *scheduler.Losses) *fittedLoss {
	f := c.fits[id]
	if n := len(l.Values); f == nil || float64(n) >= refitGrowth*float64(f.losses) {
		f = &fittedLoss{losses: n}
		if curve, ok := loss.Fit(l.Values); ok {
			f.intervals = min(curve.Converged(l.Least), maxGrowth*float64(n))
		}
		c.fits[id] = f
	}
	return f
}
