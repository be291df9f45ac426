package synergy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Info is the registry entry of policy synergy.
var Info = policy.Info{
	Name:    "synergy",
	Doc:     "gives jobs the CPUs and memory they profit from, taken from those that do not (Mohan et al., Synergy, OSDI 2022); preempts",
	Options: options,
	New:     newSynergy,
}

var options = []policy.Option{
	{Name: "order", Default: "srtf", Example: "las", Doc: "order of jobs: fifo by arrival, las by device-seconds received, srtf by remaining time"},
	{Name: "round", Default: "300", Unit: "s", Max: 1e9, Doc: "seconds of progress before a job may be preempted or moved"},
	{Name: "saturation", Default: "0.99", Min: 0.5, Max: 1, Doc: "part of its highest speed at which the CPUs and memory of a job suffice"},
	{Name: "tune", Default: "true", Doc: "share out CPUs and memory by demand; false: in proportion to devices"},
}

func newSynergy(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(options)
	p := &synergy{finder: candidate.NewFinder(d), hosts: d.HostSpeeds, saturation: v.Float("saturation"), round: v.Duration("round"), demands: map[demandKey]spec.Host{}}
	if !v.Bool("tune") {
		p.hosts = nil
	}
	p.key = map[string]orderKey{
		"fifo": func(*scheduler.Snapshot, *entry) float64 { return 0 },
		"las":  func(_ *scheduler.Snapshot, e *entry) float64 { return e.Attained },
		"srtf": remaining,
	}[v.Text("order")]
	if err := v.Err(); err != nil {
		return nil, err
	}
	if p.key == nil {
		return nil, fmt.Errorf("option order %q: want fifo, las or srtf", v.Text("order"))
	}
	return p, nil
}

// synergy runs the first jobs of an order, as many as fit, each on its requested devices,
// and shares out the CPUs and memory of hosts by algorithm Tune (tune.go). Without
// Deps.HostSpeeds, or for a model that these do not have, a job gets what it requests.
//
// Source: the artifact msr-fiddle/synergy at commit 1b013c2, simulator/resources/cluster.py,
// and a published description of Synergy-Tune. Differs: the artifact places all jobs anew in
// every round of 300 s. Here a running job keeps its devices, CPUs and memory until they are
// needed, or until more CPUs and memory save it more than a restart costs; a change of them
// is a restart. If a job does not fit because devices are fragmented, all jobs that have run
// for a round are placed anew. Storage bandwidth and networks are not allocated.
type synergy struct {
	finder     *candidate.Finder
	hosts      scheduler.HostSpeeds // nil = none
	key        orderKey
	saturation float64
	round      time.Duration
	demands    map[demandKey]spec.Host
}

// orderKey returns the key of a job in the order of jobs; lower runs first.
type orderKey func(*scheduler.Snapshot, *entry) float64

// entry is a job of a decision.
type entry struct {
	*scheduler.JobState
	key     float64
	pinned  bool               // keeps its devices: it has not run for a round
	options []candidate.Config // in the order of preference
	blind   bool
	warning string
	group   int       // where it is to run
	best    spec.Host // best-case demand per device there
	granted *scheduler.Grant
	why     string
}

// Decide chooses the jobs to run, places them and shares out hosts.
func (p *synergy) Decide(ctx context.Context, s *scheduler.Snapshot) (d scheduler.Decision, err error) {
	entries, err := p.entries(ctx, s)
	if err != nil || len(entries) == 0 {
		return d, err
	}
	t := p.tune(s, runnable(s, entries))
	waiting := false
	for _, e := range entries {
		if e.granted != nil {
			d.Grants = append(d.Grants, e.granted)
		} else {
			waiting = true
		}
		if e.warning != "" {
			d.Warnings = append(d.Warnings, e.warning)
		}
		e.explain(s, &d)
	}
	d.Wake = p.wake(s, entries, waiting || t.short)
	return d, nil
}

// wake returns when the decision may change without an event: when a job has run for a round,
// if others wait or lack CPUs or memory.
func (p *synergy) wake(s *scheduler.Snapshot, entries []*entry, wanting bool) time.Duration {
	if !wanting {
		return 0
	}
	at := policy.Never
	for _, e := range entries {
		if e.granted == nil {
			continue
		}
		ready := e.Ready
		if e.granted != e.Grant {
			ready = s.Now + e.StartCost
		}
		next := ready + p.round
		if next <= s.Now {
			next = s.Now + max(p.round, policy.MinWake)
		}
		at = min(at, next)
	}
	if at == policy.Never {
		return 0
	}
	return max(at, s.Now+policy.MinWake)
}

// entries returns the jobs in the order in which they run: those that have not run for a round
// first, then by key and arrival.
func (p *synergy) entries(ctx context.Context, s *scheduler.Snapshot) (out []*entry, err error) {
	for _, j := range s.Jobs() {
		e := &entry{JobState: j, pinned: j.Grant != nil && s.Now < j.Ready+p.round, group: -1}
		w, err := p.finder.AsSubmitted(ctx, s.Cluster, j.Job)
		if err != nil {
			return nil, err
		}
		e.options, e.blind, e.warning = w.Configs, w.Blind, w.Warning
		if w.Blind {
			if e.options, _, err = p.finder.Guess(ctx, s, j); err != nil {
				return nil, err
			}
		}
		e.key = p.key(s, e)
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b *entry) int {
		if a.pinned != b.pinned {
			if a.pinned {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.key, b.key)
	})
	return out, nil
}

// remaining returns the remaining seconds of a job at its own plan on its fastest devices; of
// one without a prediction by its recorded duration.
func remaining(s *scheduler.Snapshot, e *entry) float64 {
	rate := 0.0
	if len(e.options) > 0 {
		rate = e.options[0].Rate
	}
	if rate <= 0 {
		rate = candidate.GuessRate(s.Now, e.JobState)
	}
	return candidate.RunTime(e.JobState, rate)
}

// runnable returns the first jobs that fit by their numbers of devices, each with its group: its
// present one, or else that of its first configuration with enough devices left.
func runnable(s *scheduler.Snapshot, entries []*entry) (out []*entry) {
	idle := s.Idle()
	left := make([]int, len(s.Cluster.Groups))
	for g := range left {
		left[g] = idle.FreeIn(g)
	}
	for _, e := range entries {
		if e.Grant != nil {
			if g := idle.Group[e.Grant.Slots[0].Node]; left[g] >= e.Grant.Devices() {
				e.group = g
			}
		}
		for i := range e.options {
			if o := &e.options[i]; e.group < 0 && left[o.Group] >= o.Devices {
				e.group = o.Group
			}
		}
		if e.group >= 0 {
			left[e.group] -= e.Job.Devices
			out = append(out, e)
		} else {
			e.why = fmt.Sprintf("%s are not left by the jobs before it, key %.6g", spec.Count(e.Job.Devices, "device"), e.key)
		}
	}
	return out
}

// explain adds the reason for the devices of a job.
func (e *entry) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	switch {
	case !s.Reasons:
	case e.why != "":
		d.Because(s, e.Job.ID, "%s", e.why)
	case e.granted == nil:
		d.Because(s, e.Job.ID, "the free devices are too fragmented for %s", spec.Count(e.Job.Devices, "device"))
	case e.granted == e.Grant || hostOf(e.granted) == (spec.Host{}):
		d.Because(s, e.Job.ID, "among the first jobs that fit, key %.6g", e.key)
	default:
		d.Because(s, e.Job.ID, "among the first jobs that fit, key %.6g, with %v per device", e.key, hostOf(e.granted))
	}
}
