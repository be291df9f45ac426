package elasticflow

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
)

// Info is the registry entry of policy elasticflow.
var Info = policy.Info{
	Name:    "elasticflow",
	Doc:     "minimum satisfactory shares meet deadlines, spare devices go where they cost the fewest device-seconds (Gu et al., ElasticFlow, ASPLOS 2023); resizes and preempts",
	Options: options,
	New:     newElasticFlow,
}

var options = []policy.Option{
	{Name: "slot", Default: "60", Unit: "s", Min: 1, Max: 1e9, Doc: "seconds that a job is assumed to keep spare devices, and between two decisions without an event"},
	{Name: "best-effort-first", Default: "true", Doc: "offer spare devices to jobs without a deadline first; false: to jobs with a deadline first"},
}

func newElasticFlow(d policy.Deps) (scheduler.Policy, error) {
	p := &elasticFlow{Shares: NewShares(d), admitted: map[int]bool{}}
	v := d.Values(options)
	p.slot, p.bestEffortFirst = max(v.Duration("slot"), policy.MinWake), v.Bool("best-effort-first")
	return p, v.Err()
}

// elasticFlow gives every job with a deadline its minimum satisfactory share, in the order of
// deadlines, and spare devices to the job for which they cost the fewest device-seconds.
//
// A job is admitted at its first decision if it can meet its deadline and no job that could
// before misses its own because of it; otherwise it is served by best effort. Admission rule
// deadline rejects such jobs instead, as the paper does.
//
// Best-effort jobs get their least level in ascending order of remaining time, then each
// further level goes where it advances a completion most per device.
//
// Source: abstract and artifact of the paper, pkusys/ElasticFlow at commit 0d29ad9,
// scheduler.py; sections 4.1 (progressive filling and its worked example, see share_test.go)
// and 4.2 as two published reading notes describe them. Differs: the artifact fills a plan
// from the deadline backwards with two neighbouring shares, here one share holds from now to
// the end. A change of level costs the job's start cost, in plans too. Levels are Sia's
// configurations, powers of two within a node and whole nodes; a plan is in one group of
// nodes, that with the fewest device-seconds. A job that will miss its deadline after all
// becomes best effort, before the others. Buddy allocation is replaced by placing the largest
// jobs first, and moving jobs of a group where one would not fit.
type elasticFlow struct {
	*Shares
	slot            time.Duration
	bestEffortFirst bool
	admitted        map[int]bool // by JobState.Order
}

// Decide plans all jobs and applies the first levels of the plans.
func (p *elasticFlow) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	for i := range s.Ended {
		delete(p.admitted, s.Ended[i].Order)
	}
	all, err := p.demands(ctx, s, s.Jobs())
	if err != nil || len(all) == 0 {
		return scheduler.Decision{}, err
	}
	w := p.work(s, all)
	w.slot = p.slot.Seconds()
	w.admit(p.admitted)
	w.plan()
	if p.bestEffortFirst {
		w.growBestEffort()
		w.grow()
	} else {
		w.grow()
		w.growBestEffort()
	}
	return p.apply(s, w), nil
}

// apply places the first levels of all plans.
func (p *elasticFlow) apply(s *scheduler.Snapshot, w *work) (d scheduler.Decision) {
	rows, picks := make([]*sia.Row, len(w.demands)), make([]int, len(w.demands))
	for i, m := range w.demands {
		rows[i], picks[i] = m.Row, m.pick()
	}
	sia.Place(p.space.Finder, s, s.Idle(), rows, picks)
	d.Wake = s.Now + p.slot
	for i, m := range w.demands {
		if m.Granted != nil {
			d.Grants = append(d.Grants, m.Granted)
		}
		if m.Warning != "" {
			d.Warnings = append(d.Warnings, m.Warning)
		}
		if m.deadline != 0 && !m.fits {
			d.Warnings = append(d.Warnings, fmt.Sprintf("job %s cannot meet its deadline at %v", m.Job.ID, m.Job.Deadline))
		}
		if at := m.plan.change(); at > 0 {
			d.Wake = min(d.Wake, policy.After(s.Now, max(at, policy.MinWake.Seconds())))
		}
		if s.Reasons {
			m.explain(s, &d, picks[i])
		}
	}
	return d
}

// Shares computes minimum satisfactory shares.
type Shares struct{ space *sia.Space }

// NewShares returns the shares by the predictions of d.Oracle.
func NewShares(d policy.Deps) *Shares {
	elastic, _ := d.Oracle.(scheduler.Elastic)
	return &Shares{sia.NewSpace(d, elastic)}
}

// Admits reports whether job, which has just been submitted, can meet its deadline beside the
// jobs in the system, and the reason if not. start is its start cost. A job without a deadline
// or of unknown work always can.
func (p *Shares) Admits(ctx context.Context, s *scheduler.Snapshot, job *spec.Job, start time.Duration) (ok bool, why string, err error) {
	steps, err := p.steps(ctx, s.Cluster, job)
	if job.Deadline == 0 || steps == 0 || err != nil {
		return err == nil, "", err
	}
	j := &scheduler.JobState{Job: job, Order: math.MaxInt, Remaining: steps, StartCost: start, Since: s.Now}
	all, err := p.demands(ctx, s, append(slices.Clone(s.Jobs()), j))
	if err != nil {
		return false, "", err
	}
	w, last := p.work(s, all), len(all)-1
	for _, m := range all {
		m.fits = m.deadline != 0
	}
	all[last].strict = true
	before, after := w.meet(all[:last]), w.meet(all)
	if !after[last] {
		return false, all[last].whyNot(), nil
	}
	for i := range all[:last] {
		if before[i] && !after[i] {
			return false, fmt.Sprintf("job %s would miss its deadline", all[i].Job.ID), nil
		}
	}
	return true, "", nil
}

// steps returns the work of a job, in seconds at speed 1 for one without a prediction but with
// a duration; 0 = unknown.
func (p *Shares) steps(ctx context.Context, c spec.Cluster, j *spec.Job) (float64, error) {
	w, err := p.space.Finder.AsSubmitted(ctx, c, j)
	switch {
	case err != nil:
		return 0, err
	case j.Steps > 0 && (!w.Blind || j.Duration > 0):
		return j.Steps, nil
	case len(w.Configs) > 0:
		return j.Duration.Seconds() * w.Configs[0].Rate, nil
	}
	return j.Duration.Seconds(), nil
}

// demands returns jobs with their levels.
func (p *Shares) demands(ctx context.Context, s *scheduler.Snapshot, jobs []*scheduler.JobState) (out []*demand, err error) {
	for _, j := range jobs {
		r, err := p.space.Row(ctx, s, j)
		if err != nil {
			return nil, err
		}
		m := &demand{Row: r, held: r.CellOf(s), left: j.Remaining, start: j.StartCost.Seconds()}
		if j.Grant != nil {
			m.ready = max((j.Ready - s.Now).Seconds(), 0)
		}
		if j.Job.Deadline > 0 {
			m.deadline = (j.Job.Deadline - s.Now).Seconds()
		}
		m.setLevels(len(s.Cluster.Groups))
		out = append(out, m)
	}
	return out, nil
}

// work returns the planning of demands on the devices that are up.
func (p *Shares) work(s *scheduler.Snapshot, all []*demand) *work {
	w := &work{demands: all}
	idle := s.Idle()
	for g := range s.Cluster.Groups {
		w.idle = append(w.idle, idle.FreeIn(g))
	}
	return w
}

// explain adds the reason for the devices of a job.
func (m *demand) explain(s *scheduler.Snapshot, d *scheduler.Decision, pick int) {
	id := m.Job.ID
	switch {
	case m.Granted == nil && pick >= 0:
		d.Because(s, id, "%s were chosen, but the free devices are too fragmented", spec.Count(m.Cells[pick].Devices, "device"))
	case m.deadline != 0 && m.fits && m.plan.share > 0:
		d.Because(s, id, "a share of %s meets the deadline, %.0f s before it%s", spec.Count(m.plan.share, "device"), m.deadline-m.plan.end, m.growth())
	case m.deadline != 0:
		d.Because(s, id, "best effort, as the deadline cannot be met: %s", m.whyNot())
	case pick < 0:
		d.Because(s, id, "best effort: no devices are left by the jobs with a deadline and the shorter ones")
	default:
		d.Because(s, id, "best effort on %s", spec.Count(m.Cells[pick].Devices, "spare device"))
	}
}
