package replay

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Policy decides what was recorded. A job that was not there any more when it is
// here keeps what it holds as long as there is room.
type Policy struct {
	rounds Rounds
	weigh  policy.Weigher
	last   time.Duration // decided
	report Report
}

// New returns the policy that imposes rounds and weighs them as w would.
func New(rounds Rounds, w policy.Weigher) *Policy {
	return &Policy{rounds: rounds, weigh: w, report: Report{Recorded: len(rounds)}}
}

// Report says how a replay compares with its record.
type Report struct {
	Recorded    int      // rounds there are in the record
	Rounds      int      // of them, those that were decided
	Impossible  int      // of these, those that the policy could not have decided so
	Better      int      // decided better than the policy would have, by more than 1e-6
	Gap         float64  // sum over all others by how much they were decided worse
	WideGaps    int      // rounds where that is more than WideGap
	WidestGap   float64  // the most
	JobRounds   int      // times that a job held devices in a round, here and in the record
	Batches     int      // of them, those that train as recorded: batch and micro-batches
	Progress    int      // and those that are as far, to the digits recorded
	Differences []string // the first of each kind
}

// WideGap is the difference of two objectives that is not one of rounding: of one
// cost by 1/100 and half as much again.
const WideGap = 0.015

// Report returns how what was decided so far compares.
func (p *Policy) Report() Report { return p.report }

// Decide implements scheduler.Policy.
func (p *Policy) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	recorded, given := p.rounds[s.Now], map[spec.JobID]policy.Given{}
	for _, j := range s.Jobs() {
		row, ok := recorded[j.Job.ID]
		switch {
		case ok && row.Devices > 0:
			gi, err := groupOf(s.Cluster, row.Accelerator)
			if err != nil {
				return scheduler.Decision{}, err
			}
			given[j.Job.ID] = policy.Given{Group: gi, Devices: row.Devices}
		case !ok && j.Grant != nil:
			given[j.Job.ID] = policy.Given{Group: s.Free().Group[j.Grant.Slots[0].Node], Devices: j.Grant.Devices()}
		}
	}
	w, err := p.weigh.Weigh(ctx, s, given)
	if err == nil && len(recorded) > 0 && s.Now > p.last {
		p.last = s.Now
		p.report.compare(s.Now, &w)
	}
	return w.Decision, err
}

func groupOf(c spec.Cluster, accelerator string) (int, error) {
	for gi := range c.Groups {
		if c.Groups[gi].Accelerator.Name == accelerator {
			return gi, nil
		}
	}
	return 0, fmt.Errorf("replay: the cluster has no %s", accelerator)
}

// compare takes in a round.
func (r *Report) compare(now time.Duration, w *policy.Weighed) {
	r.Rounds++
	gap := w.Given - w.Own
	switch {
	case w.Impossible != "":
		r.count(&r.Impossible, "at %v: %s", now, w.Impossible)
	case gap < -1e-6:
		r.count(&r.Better, "at %v: what was decided costs %g, the policy found %g", now, w.Given, w.Own)
	default:
		r.Gap += max(gap, 0)
		r.WidestGap = max(r.WidestGap, gap)
		if gap > WideGap {
			r.count(&r.WideGaps, "at %v: what was decided costs %g, the policy found %g", now, w.Given, w.Own)
		}
	}
}

// count adds to what is counted, and keeps the first.
func (r *Report) count(n *int, format string, args ...any) {
	if *n++; *n == 1 {
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	}
}

// Watch takes in how a job goes on that holds devices, see goodput.Agents.
func (p *Policy) Watch(now time.Duration, job spec.JobID, a goodput.AgentState) {
	row, ok := p.rounds[now][job]
	if !ok || row.Devices == 0 {
		return
	}
	r := &p.report
	r.JobRounds++
	differs := r.JobRounds - 1 // until now as many would be equal
	if row.Batch == a.Batch && row.Accum == a.Accum {
		r.Batches++
	} else if r.Batches == differs {
		r.Differences = append(r.Differences, fmt.Sprintf("at %v: job %s trains %d samples in %d micro-batches, recorded are %d in %d", now, job, a.Batch, a.Accum, row.Batch, row.Accum))
	}
	if row.Epoch == a.Epoch && sameDigits(row.Progress, a.Progress) {
		r.Progress++
	} else if r.Progress == differs {
		r.Differences = append(r.Differences, fmt.Sprintf("at %v: job %s is at %g steps in epoch %d, recorded are %g in %d", now, job, a.Progress, a.Epoch, row.Progress, row.Epoch))
	}
}

// sameDigits reports whether v is what was recorded with six digits.
func sameDigits(recorded, v float64) bool {
	digit := math.Pow(10, math.Floor(math.Log10(max(math.Abs(recorded), 1e-9)))-5)
	return math.Abs(recorded-v) <= 0.501*digit
}
