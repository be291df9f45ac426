package learn

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Episode is a simulation without a policy. It is used once.
type Episode struct {
	Config sim.Config
	Deps   policy.Deps
}

// Draw returns the episode of a number. Equal numbers give equal workloads, different ones give different workloads.
// Several goroutines call it.
type Draw func(ctx context.Context, number int) (Episode, error)

// stream returns the random stream of a name and number.
func stream(seed uint64, name string, number int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()+uint64(number)*0x9e3779b97f4a7c15))
}

// action is a chosen action with its state.
type action struct {
	state   []float32
	allowed []bool
	seats   int // jobs in the columns of state
	chosen  int
	prob    float64 // probability of the choice
	right   []bool  // by action: leads to the teacher's decision; nil without a teacher
	extra   float64 // reward of this action alone
}

// slot is the actions of one decision, with their reward until the next decision that had a choice.
type slot struct {
	actions []action
	reward  float64
	began   time.Duration
	took    time.Duration
}

// observer is a policy that records the actions of another policy and their rewards.
type observer struct {
	scheduler.Policy
	reward Reward
	slot   float64 // seconds
	slots  []slot
	chosen []action               // actions of the current decision
	done   map[spec.JobID]float64 // share of the work, of the jobs in the system
	last   time.Duration          // time of the last observation
}

func newObserver(r Reward, slotSec float64) *observer {
	return &observer{reward: r, slot: slotSec, done: map[spec.JobID]float64{}}
}

func (o *observer) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	o.look(s)
	o.chosen = nil
	d, err := o.Policy.Decide(ctx, s)
	if len(o.chosen) > 0 {
		if n := len(o.slots); n > 0 {
			o.slots[n-1].took = s.Now - o.slots[n-1].began
		}
		o.slots = append(o.slots, slot{actions: o.chosen, began: s.Now})
	}
	return d, err
}

// advance returns the share of work that j did since the last call.
func (o *observer) advance(j *scheduler.JobState) float64 {
	total := j.Done + j.Remaining
	if !(total > 0) {
		return 0
	}
	before := o.done[j.Job.ID]
	o.done[j.Job.ID] = j.Done / total
	return j.Done/total - before
}

// look rewards the last slot for the progress since.
func (o *observer) look(s *scheduler.Snapshot) {
	inside, gained := len(o.done), 0.0
	for i := range s.Ended {
		gained += o.advance(&s.Ended[i])
		delete(o.done, s.Ended[i].Job.ID)
	}
	for _, j := range s.Jobs() {
		gained += o.advance(j)
	}
	o.credit(gained, inside, s.Now)
}

// credit rewards the last slot for the sum of shares of work by the jobs in the system until now.
func (o *observer) credit(gained float64, inside int, now time.Duration) {
	if n := len(o.slots); n > 0 {
		switch o.reward {
		case Progress:
			o.slots[n-1].reward += gained
		case Waiting:
			o.slots[n-1].reward -= float64(inside) * (now - o.last).Seconds() / o.slot
		case PerAction: // each action has its own reward
		}
	}
	o.last = now
}

// finish rewards the time until the end of the run.
func (o *observer) finish(r *sim.Result) {
	end, gained := o.last, 0.0
	inside := len(o.done)
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Finished {
			end = max(end, j.End)
			if before, open := o.done[j.Job.ID]; open {
				gained += 1 - before
			}
		}
	}
	o.credit(gained, inside, end)
	if n := len(o.slots); n > 0 {
		o.slots[n-1].took = end - o.slots[n-1].began
	}
}

// meanJCT returns the mean completion time of the finished scored jobs, in seconds, and the number of unfinished ones.
func meanJCT(r *sim.Result) (sec float64, unfinished int) {
	n := 0
	for i := range r.Jobs {
		switch j := &r.Jobs[i]; {
		case !j.Scored || j.Rejected != "":
		case !j.Finished:
			unfinished++
		default:
			n++
			sec += (j.JCT().Seconds() - sec) / float64(n)
		}
	}
	return sec, unfinished
}
