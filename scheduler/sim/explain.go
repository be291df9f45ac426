package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// teller tells of the jobs that are to be explained.
type teller struct {
	*Explain
	said  map[spec.JobID]string // of every one, the reason told last for staying as it is, without numbers
	shown []*scheduler.JobState // scratch of askWhy
}

func newTeller(x *Explain) *teller {
	t := &teller{Explain: x, said: make(map[spec.JobID]string, len(x.Jobs))}
	for _, id := range x.Jobs {
		t.said[id] = ""
	}
	return t
}

// tell passes on what happened to one of the jobs.
func (t *teller) tell(ev Event) {
	if ev.Job == nil {
		return
	}
	if _, asked := t.said[ev.Job.ID]; asked {
		t.said[ev.Job.ID] = ""
		t.Tell(ev)
	}
}

// tellWhy passes on why a job waits or stays, unless that was said before.
func (t *teller) tellWhy(ev Event) {
	said := ev.Kind.String() + " " + withoutNumbers(ev.Why)
	if t.said[ev.Job.ID] != said {
		t.Tell(ev)
		t.said[ev.Job.ID] = said
	}
}

// withoutNumbers drops all digits, so that what differs in them alone is equal.
func withoutNumbers(why string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, why)
}

// askWhy has a snapshot ask for the reasons that somebody wants to know.
func (e *engine) askWhy(s *scheduler.Snapshot) {
	s.Reasons = e.Observe != nil || e.tells != nil
	if e.tells == nil {
		return
	}
	e.tells.shown = e.tells.shown[:0]
	for id := range e.tells.said {
		if j := e.byID[id]; j != nil {
			e.tells.shown = append(e.tells.shown, &j.state)
		}
	}
	slices.SortFunc(e.tells.shown, func(a, b *scheduler.JobState) int { return cmp.Compare(a.Order, b.Order) })
	s.Explain = e.tells.shown
}

// explain tells why those wait or go on as they are whom d, which is carried out,
// has not changed.
func (e *engine) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	for _, j := range s.Explain {
		changed := func(s step) bool { return &s.state == j }
		if slices.ContainsFunc(e.stops, changed) || slices.ContainsFunc(e.starts, changed) {
			continue
		}
		why := d.Why[j.Job.ID]
		if j.Grant == nil {
			e.tells.tellWhy(Event{At: e.now, Kind: Waits, Job: j.Job, Why: cmp.Or(why, e.whyWaits(j.Job))})
		} else if why != "" {
			e.tells.tellWhy(Event{At: e.now, Kind: Stays, Job: j.Job, Grant: j.Grant, Why: why})
		}
	}
}

// whyWaits is what there is to say of a job that waits where the policy says
// nothing.
func (e *engine) whyWaits(j *spec.Job) string {
	if j.Served() {
		return "not even one replica and one parameter server are for it"
	}
	most := 0
	free := e.ledger.Snapshot(e.now).Free()
	for gi := range e.Cluster.Groups {
		if mayUse(j, &e.Cluster.Groups[gi]) {
			most = max(most, free.FreeIn(gi))
		}
	}
	if most < j.Devices {
		return fmt.Sprintf("no room: asks for %s, %s free", spec.Count(j.Devices, "device"), are(most))
	}
	return fmt.Sprintf("asks for %s, and %s free: not where it could run, or not for it by this policy", spec.Count(j.Devices, "device"), are(most))
}

// are writes how many there are of something.
func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}
