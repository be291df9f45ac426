package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// explainer passes on events and reasons of the jobs of an Explain.
type explainer struct {
	*Explain
	reasons map[spec.JobID]string // the last reason of each job for waiting or staying, without numbers
	shown   []*scheduler.JobState // scratch of requestReasons
}

func newExplainer(options *Explain) *explainer {
	x := &explainer{Explain: options, reasons: make(map[spec.JobID]string, len(options.Jobs))}
	for _, id := range options.Jobs {
		x.reasons[id] = ""
	}
	return x
}

// event passes on an event of one of the jobs.
func (x *explainer) event(ev Event) {
	if ev.Job == nil {
		return
	}
	if _, selected := x.reasons[ev.Job.ID]; selected {
		x.reasons[ev.Job.ID] = ""
		x.OnEvent(ev)
	}
}

// explainWhy passes on why a job waits or stays, unless it did so before.
func (x *explainer) explainWhy(ev Event) {
	reason := ev.Kind.String() + " " + withoutNumbers(ev.Why)
	if x.reasons[ev.Job.ID] != reason {
		x.OnEvent(ev)
		x.reasons[ev.Job.ID] = reason
	}
}

// withoutNumbers drops all digits, so that reasons that differ only in numbers are equal.
func withoutNumbers(why string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, why)
}

// requestReasons adds the requested reasons to a snapshot.
func (e *engine) requestReasons(s *scheduler.Snapshot) {
	s.Reasons = e.Observe != nil || e.explainer != nil
	if e.explainer == nil {
		return
	}
	e.explainer.shown = e.explainer.shown[:0]
	for id := range e.explainer.reasons {
		if j := e.byID[id]; j != nil {
			e.explainer.shown = append(e.explainer.shown, &j.state)
		}
	}
	slices.SortFunc(e.explainer.shown, func(a, b *scheduler.JobState) int { return cmp.Compare(a.Order, b.Order) })
	s.Explain = e.explainer.shown
}

// explain passes on why jobs that d, already applied, does not change wait or stay.
func (e *engine) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	for _, j := range s.Explain {
		changed := func(s step) bool { return &s.state == j }
		if slices.ContainsFunc(e.stops, changed) || slices.ContainsFunc(e.starts, changed) {
			continue
		}
		why := d.Why[j.Job.ID]
		if j.Grant == nil {
			e.explainer.explainWhy(Event{At: e.now, Kind: Waits, Job: j.Job, Why: cmp.Or(why, e.whyWaiting(j.Job))})
		} else if why != "" {
			e.explainer.explainWhy(Event{At: e.now, Kind: Stays, Job: j.Job, Grant: j.Grant, Why: why})
		}
	}
}

// whyWaiting returns the reason why a job waits if the policy gives none.
func (e *engine) whyWaiting(j *spec.Job) string {
	if j.HasParamServers() {
		return "no room for one replica and one parameter server"
	}
	most := 0
	free := e.ledger.Snapshot(e.now).Free()
	for gi := range e.Cluster.Groups {
		if j.Accepts(&e.Cluster.Groups[gi]) {
			most = max(most, free.FreeIn(gi))
		}
	}
	if most < j.Devices {
		return fmt.Sprintf("no room: requests %s, %s free", spec.Count(j.Devices, "device"), are(most))
	}
	return fmt.Sprintf("requests %s, and %s free, but they do not fit the job or the policy keeps them from it", spec.Count(j.Devices, "device"), are(most))
}

// are writes "N are", or "1 is".
func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}
