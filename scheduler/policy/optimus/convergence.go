package optimus

import (
	"context"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/loss"
)

// convergence is what a job has left as far as its training loss tells, and those of
// its kind that are done.
//
// Source: Peng et al., Optimus, EuroSys 2018, section 3.1, and the code
// pengyanghua/optimus@8c43920, from which are what to expect without a fit, 20
// stretches more, and the mean of the jobs of the kind. There that comes before a
// fit, here after: jobs of a kind need not be alike.
type convergence struct {
	log  scheduler.LossLog // nil = nothing is logged
	fits map[spec.JobID]*fittedLoss
	done map[candidate.Kind]finishedSteps
	at   time.Duration // of the last snapshot that was looked at
}

// fittedLoss is the fit to so many losses of a job.
type fittedLoss struct {
	losses    int
	stretches float64 // the job is done after, 0 = there is no fit
}

// finishedSteps is a sum over jobs that are done.
type finishedSteps struct {
	steps float64
	jobs  int
}

const (
	// youngLosses is how many losses a fit needs to be relied upon.
	youngLosses = 10
	// refitGrowth is by which factor there are more losses when a job is fitted anew.
	refitGrowth = 1.1
	// mostTimes bounds what a job is believed to take by how often it has taken as
	// long already: a curve that hardly falls may converge at any time.
	mostTimes = 10
	// unknownStretches is what a job is taken to have left without a fit.
	unknownStretches = 20
)

func newConvergence(log scheduler.LossLog) *convergence {
	return &convergence{log: log, fits: map[spec.JobID]*fittedLoss{}, done: map[candidate.Kind]finishedSteps{}, at: -1}
}

// look learns from jobs that have finished.
func (c *convergence) look(s *scheduler.Snapshot) {
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

// left returns the steps that j is believed to have left, and whether that is no
// more than a guess.
func (c *convergence) left(ctx context.Context, j *scheduler.JobState) (steps float64, young bool) {
	var losses scheduler.Losses
	logged := false
	if c.log != nil {
		losses, logged = c.log.Log(ctx, j)
	}
	if logged && len(losses.Values) >= youngLosses {
		if f := c.fit(j.Job.ID, &losses); f.stretches > 0 {
			return max(f.stretches*losses.Every-j.Done, losses.Every), false
		}
	}
	least := max(losses.Every, 1)
	if t := c.done[candidate.KindOf(j.Job)]; t.jobs > 0 {
		return max(t.steps/float64(t.jobs)-j.Done, least), true
	}
	if logged {
		return unknownStretches * losses.Every, true
	}
	return max(j.Done, least), true // as long again
}

// fit returns the fit to the losses of a job, or to those of a little earlier.
func (c *convergence) fit(id spec.JobID, l *scheduler.Losses) *fittedLoss {
	f := c.fits[id]
	if n := len(l.Values); f == nil || float64(n) >= refitGrowth*float64(f.losses) {
		f = &fittedLoss{losses: n}
		if curve, ok := loss.Fit(l.Values); ok {
			f.stretches = min(curve.Converged(l.Least), mostTimes*float64(n))
		}
		c.fits[id] = f
	}
	return f
}
