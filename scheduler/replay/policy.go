package replay

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
)

// Policy applies recorded decisions. A job without a record that is still in the system keeps its devices while they
// fit.
type Policy struct {
	rounds Rounds
	weigh  sia.Weigher
	last   time.Duration // last decision
	report Report
}

// New returns the policy that applies rounds; w evaluates each round as its own policy would decide it.
func New(rounds Rounds, w sia.Weigher) *Policy {
	return &Policy{rounds: rounds, weigh: w, report: Report{Recorded: len(rounds)}}
}

// Report compares a replay with its record.
type Report struct {
	Recorded    int      // rounds in the record
	Rounds      int      // recorded rounds that were applied
	Impossible  int      // applied rounds that the policy could not have decided
	Better      int      // rounds better than the policy's own decision by more than 1e-6
	Gap         float64  // sum of objective gaps over the other rounds
	WideGaps    int      // rounds with a gap above WideGap
	WidestGap   float64  // largest gap
	JobRounds   int      // job and round pairs with devices, in replay and record
	Batches     int      // pairs with the recorded batch and micro-batches
	Progress    int      // pairs with the recorded progress, to the recorded digits
	Differences []string // first difference of each kind
}

// WideGap is an objective gap beyond rounding: one cost rounded by 1/100, times 1.5.
const WideGap = 0.015

// Report returns the comparison so far.
func (p *Policy) Report() Report { return p.report }

// Decide implements scheduler.Policy.
func (p *Policy) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	recorded, given := p.rounds[s.Now], map[spec.JobID]sia.Given{}
	for _, j := range s.Jobs() {
		row, ok := recorded[j.Job.ID]
		switch {
		case ok && row.Devices > 0:
			gi, err := groupOf(s.Cluster, row.Accelerator)
			if err != nil {
				return scheduler.Decision{}, err
			}
			given[j.Job.ID] = sia.Given{Group: gi, Devices: row.Devices}
		case !ok && j.Grant != nil:
			given[j.Job.ID] = sia.Given{Group: s.Free().Group[j.Grant.Slots[0].Node], Devices: j.Grant.Devices()}
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

// compare adds a round.
func (r *Report) compare(now time.Duration, w *sia.Weighed) {
	r.Rounds++
	gap := w.Given - w.Own
	switch {
	case w.Impossible != "":
		r.count(&r.Impossible, "at %v: %s", now, w.Impossible)
	case gap < -1e-6:
		r.count(&r.Better, "at %v: the recorded decision costs %g, that of the policy %g", now, w.Given, w.Own)
	default:
		r.Gap += max(gap, 0)
		r.WidestGap = max(r.WidestGap, gap)
		if gap > WideGap {
			r.count(&r.WideGaps, "at %v: the recorded decision costs %g, that of the policy %g", now, w.Given, w.Own)
		}
	}
}

// count increments n and keeps the first difference.
func (r *Report) count(n *int, format string, args ...any) {
	if *n++; *n == 1 {
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	}
}

// Watch compares the progress of a job that holds devices, see goodput.Agents.
func (p *Policy) Watch(now time.Duration, job spec.JobID, a goodput.AgentState) {
	row, ok := p.rounds[now][job]
	if !ok || row.Devices == 0 {
		return
	}
	r := &p.report
	r.JobRounds++
	differs := r.JobRounds - 1 // equal pairs before the first difference
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

// sameDigits reports whether v equals the recorded value to its six digits.
func sameDigits(recorded, v float64) bool {
	digit := math.Pow(10, math.Floor(math.Log10(max(math.Abs(recorded), 1e-9)))-5)
	return math.Abs(recorded-v) <= 0.501*digit
}
