package learn

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
)

// guide is a Chooser that labels the actions that lead to the teacher's decision. It chooses a random one of them, or
// the learner's action.
type guide struct {
	form    *dl2.Form
	targets map[spec.JobID]target
	stream  *rand.Rand
	learner dl2.Chooser // nil chooses at random
	to      *observer
}

// target is the teacher's allocation of a job.
type target struct {
	workers, servers int
}

func (g *guide) Choose(v *dl2.View) (int, error) {
	right, n := make([]bool, len(v.Allowed)), 0
	for i := range v.Seats {
		s := &v.Seats[i]
		n += g.mark(right, v.Allowed, s, g.targets[s.Job.Job.ID], i)
	}
	if n == 0 {
		right[v.Void], n = true, 1
	}
	chosen, err := g.pick(v, right, n)
	g.to.note(v, chosen, 1)
	g.to.chosen[len(g.to.chosen)-1].right = right
	return chosen, err
}

// mark marks the allowed actions that move column i towards its target, and returns their number.
func (g *guide) mark(right, allowed []bool, s *dl2.Seat, t target, i int) (n int) {
	set := func(a int, leads bool) {
		if leads && allowed[a] {
			right[a] = true
			n++
		}
	}
	if !g.form.Servers {
		set(i, s.Next > 0 && (s.Next <= t.workers || s.Workers == 0 && t.workers > 0))
		return n
	}
	w, u := t.workers > s.Workers, t.servers > s.Servers
	set(3*i+oneWorker, w && !u)
	set(3*i+oneServer, u && !w)
	set(3*i+oneOfEach, w && u)
	return n
}

// pick returns the learner's action, or one of the n right actions.
func (g *guide) pick(v *dl2.View, right []bool, n int) (int, error) {
	if g.learner != nil {
		return g.learner.Choose(v)
	}
	k := g.stream.IntN(n)
	for a, ok := range right {
		if ok {
			if k == 0 {
				return a, nil
			}
			k--
		}
	}
	return v.Void, nil
}

// lesson is a policy that labels dl2's actions with the teacher's decisions. The teacher's decision applies, or with a
// learner the learner's.
type lesson struct {
	teacher scheduler.Policy
	guided  *observer // observes dl2 under the guide
	guide   *guide
}

func (p *lesson) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d, err := p.teacher.Decide(ctx, s)
	if err != nil {
		return d, err
	}
	p.guide.targets = targets(s, &d)
	own, err := p.guided.Decide(ctx, s)
	if p.guide.learner != nil {
		d = own
	}
	return d, err
}

// targets returns the allocation of every job under a decision.
func targets(s *scheduler.Snapshot, d *scheduler.Decision) map[spec.JobID]target {
	out := map[spec.JobID]target{}
	give := func(g *scheduler.Grant) {
		p := g.Plan.Normal()
		t := target{workers: g.Devices()}
		if p.ParamServers > 0 {
			t = target{workers: p.DP, servers: p.ParamServers}
		}
		out[g.Job] = t
	}
	if d.Keep {
		for _, j := range s.Jobs() {
			if j.Grant != nil {
				give(j.Grant)
			}
		}
		for _, id := range d.Stops {
			delete(out, id)
		}
	}
	for _, g := range d.Grants {
		give(g)
	}
	return out
}

// imitate trains the policy network on the teacher's decisions. The loss is the probability of all actions that lead
// to them, over random orders of the jobs.
func (t *Trainer) imitate(ctx context.Context) error {
	o := &t.Supervised
	var seen []sample
	for update := 0; update < o.Updates; update++ {
		if round := update * o.Rounds / o.Updates; update == 0 || round > (update-1)*o.Rounds/o.Updates {
			more, err := t.lessons(ctx, round)
			if err != nil {
				return err
			}
			if seen = append(seen, more...); len(seen) == 0 {
				return fmt.Errorf("learn: teacher %s gives no training data: dl2 knows no model of the workload", o.Teacher)
			}
		}
		loss, err := t.superviseStep(seen, update)
		if err != nil {
			return err
		}
		if err := t.report(ctx, supervised, update+1, o.Updates, Losses{Policy: loss}, 0); err != nil {
			return err
		}
	}
	return nil
}

// lessons runs the episodes of a round and returns labelled samples. In the first round the teacher's decisions apply,
// in later rounds the learner's (Ross et al., DAgger, AISTATS 2011).
func (t *Trainer) lessons(ctx context.Context, round int) ([]sample, error) {
	n := t.Supervised.Episodes
	runs, err := t.runAll(ctx, t.firstEpisode(n), n, func(e *Episode, number int) (*observer, error) {
		var own dl2.Chooser
		if round > 0 {
			own = t.greedy()
		}
		return t.lesson(e, number, own)
	})
	var out []sample
	for _, r := range runs {
		for _, s := range r.slots {
			for i := range s.actions {
				out = append(out, sample{action: s.actions[i]})
			}
		}
	}
	return out, err
}

// lesson sets the policy of an episode to dl2 with labels by the teacher.
func (t *Trainer) lesson(e *Episode, number int, own dl2.Chooser) (*observer, error) {
	teacher, err := builtin.Policies.New(t.teacher, e.Deps)
	if err != nil {
		return nil, err
	}
	g := &guide{form: &t.model.Form, stream: stream(t.Seed, "guide", number), learner: own, to: newObserver(Progress, t.model.SlotSec)}
	if g.to.Policy, err = dl2.New(e.Deps, t.model.Form, g); err != nil {
		return nil, err
	}
	e.Config.Policy, e.Config.PolicyName = &lesson{teacher: teacher, guided: g.to, guide: g}, t.teacher.String()
	return g.to, nil
}

// agreement returns the share of right actions.
func agreement(seen []*observer) float64 {
	right, all := 0, 0
	for _, o := range seen {
		for _, s := range o.slots {
			for i := range s.actions {
				if a := &s.actions[i]; a.right[a.chosen] {
					right++
				}
			}
			all += len(s.actions)
		}
	}
	return float64(right) / float64(max(all, 1))
}

// finalRate is the share of the learning rate left at the end of the phase.
const finalRate = 0.1

// superviseStep applies one update. The learning rate falls linearly.
func (t *Trainer) superviseStep(seen []sample, update int) (loss float64, err error) {
	r := stream(t.Seed, "supervised", update)
	b := &t.batch
	b.begin(&t.model.Form, t.Supervised.Batch)
	for range t.Supervised.Batch {
		b.add(&seen[r.IntN(len(seen))], r)
	}
	weight := float32(1) / float32(b.n)
	left := 1 - float64(update)/float64(t.Supervised.Updates)
	return t.policyStep(t.Supervised.Rate*(finalRate+(1-finalRate)*left), func(i int, p, dz []float32) float64 {
		return nn.AnyOf(p, b.right[i*len(p):][:len(p)], weight, dz)
	})
}
