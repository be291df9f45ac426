package live

import (
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// pace is the progress of a run, from the first change of the steps that its job reports to the last. A report that repeats
// an earlier one does not say when its steps were done.
type pace struct {
	run         int64 // Record.RunGeneration
	first, last mark
}

type mark struct {
	at   time.Time // zero = none
	done float64   // steps
}

// see takes a report of a run over. One of fewer steps begins anew: the job went back to a checkpoint.
func (p *pace) see(run int64, at time.Time, done float64) {
	switch {
	case run != p.run || done < p.last.done:
		*p = pace{run: run, last: mark{done: done}}
	case done > p.last.done:
		p.last = mark{at, done}
		if p.first.at.IsZero() {
			p.first = p.last
		}
	}
}

// ran returns the steps between the first and the last change, and the time between them.
func (p *pace) ran() scheduler.Ran {
	if p.first.at.IsZero() {
		return scheduler.Ran{}
	}
	return scheduler.Ran{Steps: p.last.done - p.first.done, Time: p.last.at.Sub(p.first.at)}
}

// rate returns the steps per second over at least some time, 0 if the changes span less.
func (p *pace) rate(least time.Duration) float64 {
	r := p.ran()
	if r.Time < max(least, 1) {
		return 0
	}
	return r.Steps / r.Time.Seconds()
}
