package learn

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// guide knows what a teacher has decided, and notes which actions lead there. It
// chooses one of them at random, or whatever the pupil does.
type guide struct {
	form    *policy.DL2Form
	targets map[spec.JobID]target
	stream  *rand.Rand
	pupil   policy.DL2Chooser // nil = at random
	to      *observer
}

// target is what a teacher gives a job.
type target struct {
	workers, servers int
}

func (g *guide) Choose(v *policy.DL2View) (int, error) {
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

// mark marks the allowed actions that bring column i nearer to its target, and
// returns how many there are.
func (g *guide) mark(right, allowed []bool, s *policy.DL2Seat, t target, i int) (n int) {
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

// pick returns what the pupil would do, or one of the n right actions.
func (g *guide) pick(v *policy.DL2View, right []bool, n int) (int, error) {
	if g.pupil != nil {
		return g.pupil.Choose(v)
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

// lesson has a teacher decide, and dl2 with a guide who knows what. What is done is
// what the teacher says, or else what the guide's pupil does.
type lesson struct {
	teacher scheduler.Policy
	guided  *observer // over dl2 with the guide
	guide   *guide
}

func (p *lesson) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d, err := p.teacher.Decide(ctx, s)
	if err != nil {
		return d, err
	}
	p.guide.targets = targets(s, &d)
	own, err := p.guided.Decide(ctx, s)
	if p.guide.pupil != nil {
		d = own
	}
	return d, err
}

// targets is what every job is to have by a decision.
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

// imitate trains the policy network to do as the teacher does: by the probability of
// all actions that lead to its decisions, the jobs in any order of columns.
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
				return fmt.Errorf("learn: teacher %s decides nothing that dl2 could: no job of the workload is of a model it is to know", o.Teacher)
			}
		}
		loss, err := t.follow(seen, update)
		if err != nil {
			return err
		}
		if err := t.tell(ctx, supervised, update+1, o.Updates, Losses{Policy: loss}, 0); err != nil {
			return err
		}
	}
	return nil
}

// lessons are what the teacher does in the episodes of a round: the first while its own
// decisions are carried out, later ones in the situations that the pupil gets into
// (Ross et al., DAgger, AISTATS 2011).
func (t *Trainer) lessons(ctx context.Context, round int) ([]sample, error) {
	n := t.Supervised.Episodes
	runs, err := t.runAll(ctx, t.firstEpisode(n), n, func(e *Episode, number int) (*observer, error) {
		var own policy.DL2Chooser
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

// lesson makes the policy of an episode one that a teacher comments on.
func (t *Trainer) lesson(e *Episode, number int, own policy.DL2Chooser) (*observer, error) {
	teacher, err := policy.New(t.teacher, e.Deps)
	if err != nil {
		return nil, err
	}
	g := &guide{form: &t.model.DL2Form, stream: stream(t.Seed, "guide", number), pupil: own, to: newObserver(Progress, t.model.SlotSec)}
	if g.to.Policy, err = policy.NewDL2(e.Deps, t.model.DL2Form, g); err != nil {
		return nil, err
	}
	e.Config.Policy, e.Config.PolicyName = &lesson{teacher: teacher, guided: g.to, guide: g}, t.teacher.String()
	return g.to, nil
}

// agreement returns the share of the actions that were right, of all that were seen.
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

// leastRate is the part of the rate that is left at the end of the phase.
const leastRate = 0.1

// follow is one update. The rate falls from update to update.
func (t *Trainer) follow(seen []sample, update int) (loss float64, err error) {
	r := stream(t.Seed, "supervised", update)
	b := &t.batch
	b.begin(&t.model.DL2Form, t.Supervised.Batch)
	for range t.Supervised.Batch {
		b.add(&seen[r.IntN(len(seen))], r)
	}
	weight := float32(1) / float32(b.n)
	left := 1 - float64(update)/float64(t.Supervised.Updates)
	return t.policyStep(t.Supervised.Rate*(leastRate+(1-leastRate)*left), func(i int, p, dz []float32) float64 {
		return nn.AnyOf(p, b.right[i*len(p):][:len(p)], weight, dz)
	})
}
