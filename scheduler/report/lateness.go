package report

import (
	"time"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

// LateSec is the delay, in seconds, after which a guaranteed job counts as late.
const LateSec = 60

// Lateness is how late guaranteed jobs end, by some reference. A job is late by
// max(0, end - reference). Undefined figures are those of no job.
type Lateness struct {
	Known    int    `json:"known"`   // guaranteed jobs that count and have a reference
	Late     int    `json:"late"`    // those that end more than LateSec after it, or never
	WorstSec Number `json:"worst_s"` // largest lateness of a finished job
	MeanSec  Number `json:"mean_s"`  // mean lateness of the finished jobs
}

// lateness returns the lateness of the guaranteed jobs of r by their references, nil if no
// job has one. A reference of 0 is unknown.
func lateness(r *sim.Result, score Score, reference func(*sim.JobRecord) time.Duration) *Lateness {
	out := &Lateness{WorstSec: Undefined(), MeanSec: Undefined()}
	finished, sum, worst := 0, 0.0, 0.0
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if !j.Job.Guaranteed || !score.Has(j.Job.ID) || reference(j) <= 0 {
			continue
		}
		out.Known++
		if !j.Finished || j.Rejected != "" {
			out.Late++
			continue
		}
		late := max(j.End-reference(j), 0).Seconds()
		if late > LateSec {
			out.Late++
		}
		finished++
		sum, worst = sum+late, max(worst, late)
	}
	if out.Known == 0 {
		return nil
	}
	if finished > 0 {
		out.WorstSec, out.MeanSec = Number(worst), Number(sum/float64(finished))
	}
	return out
}

func asSubmitted(j *sim.JobRecord) time.Duration { return j.AsSubmitted }
func backfill(j *sim.JobRecord) time.Duration    { return j.Backfill }

// latenessRow is the lateness of a run as the page shows it.
type latenessRow struct {
	Policy     string
	Color      int
	Guaranteed int
	Submitted  [3]string // late, worst and mean, as submitted
	Backfill   [3]string // by fifo-backfill
}

func newLatenessRow(s Summary, color int) latenessRow {
	return latenessRow{s.Policy, color, s.Guaranteed, s.LateSubmitted.cells(), s.LateBackfill.cells()}
}

// cells writes late of known, worst and mean.
func (l *Lateness) cells() [3]string {
	if l == nil {
		return [3]string{"-", "-", "-"}
	}
	return [3]string{Number(l.Late).Fixed(0), Human(l.WorstSec), Human(l.MeanSec)}
}

// late returns the number of late jobs, undefined for nil.
func (l *Lateness) late() Number {
	if l == nil {
		return Undefined()
	}
	return Number(l.Late)
}

// worst returns the largest lateness in seconds, undefined for nil.
func (l *Lateness) worst() Number {
	if l == nil {
		return Undefined()
	}
	return l.WorstSec
}

// fields are the cells of a CSV row: known, late, worst and mean.
func (l *Lateness) fields() []string {
	if l == nil {
		return make([]string, 4)
	}
	return []string{Number(l.Known).String(), Number(l.Late).String(), l.WorstSec.String(), l.MeanSec.String()}
}
