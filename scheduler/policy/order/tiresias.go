package order

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Tiresias is the registry entry of policy tiresias.
var Tiresias = policy.Info{
	Name:    "tiresias",
	Doc:     "queues by attained device-seconds, each in order of arrival: discretised 2D-LAS (Gu et al., Tiresias, NSDI 2019); preempts",
	Options: tiresiasOptions,
	New:     newTiresias,
}

var tiresiasOptions = append([]policy.Option{
	{Name: "limits", Default: "57600", Example: "3600/57600", Doc: "device-seconds at which a job moves to the next queue, ascending"},
	{Name: "promote", Default: "0", Max: 1e9, Doc: "a job returns to the first queue once its present wait exceeds this multiple of its run time; 0 = never"},
	{Name: "quantum", Default: "300", Unit: "s", Max: 1e9, Doc: "seconds a job makes progress before it may be preempted"},
}, preemption...)

func newTiresias(d policy.Deps) (scheduler.Policy, error) {
	rules := policy.VariantOf[Variant](d)
	if rules.TiresiasIsLAS {
		return newLAS(d)
	}
	v := d.Values(tiresiasOptions)
	t := tiresias{promote: v.Float("promote")}
	if rules.QueueByEntry {
		t.entered = map[inQueue]time.Duration{}
	}
	t.quantum = v.Duration("quantum")
	backfill := v.Bool("backfill")
	err := v.Err()
	if err == nil {
		t.limits, err = parseLimits(v.Text("limits"))
	}
	if err != nil {
		return nil, err
	}
	r, err := newPreemptive(d, Ranking{Key: t.key, Wake: t.wake, Quantum: t.quantum}, backfill)
	switch {
	case err != nil:
		return nil, err
	case rules.ByCount:
		return countFirst{r, rules.EveryRound}, nil
	}
	return r, nil
}

// parseLimits reads ascending positive numbers divided by slashes.
func parseLimits(text string) ([]float64, error) {
	var out []float64
	for _, part := range strings.Split(text, "/") {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) || len(out) > 0 && v <= out[len(out)-1] {
			return nil, fmt.Errorf("limits=%s: %q is not a number above the one before it, want ascending numbers such as 3600/57600", text, part)
		}
		out = append(out, v)
	}
	return out, nil
}

// tiresias is discretised 2D-LAS (section 3.2 of the paper). Attained service puts a job
// into a queue; each queue is FIFO. The default limit gives two queues, divided at 16
// device-hours, as in the artifact of Pollux (c793c70).
//
// Differs from the paper: a promotion lasts for the wait and the quantum after it.
// Attained service is never reset.
type tiresias struct {
	limits  []float64 // device-seconds, ascending
	promote float64   // 0 = never
	quantum time.Duration
	// entered is the time of the first decision that found a job in a queue after the
	// first; nil without QueueByEntry. It grows with the number of jobs.
	entered map[inQueue]time.Duration
}

type inQueue struct {
	job   spec.JobID
	queue int
}

// key is the number of the job's queue. With QueueByEntry it adds a fraction that grows
// with the time the job entered the queue.
func (t tiresias) key(_ context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	if j.Grant == nil && t.promotion(j, j.Since) <= s.Now {
		return 0, nil
	}
	q := t.queue(j.Attained)
	if t.entered == nil || q == 0 {
		return float64(q), nil
	}
	in := inQueue{j.Job.ID, q}
	at, known := t.entered[in]
	if !known {
		at = s.Now
		t.entered[in] = at
	}
	return float64(q) + at.Seconds()/policy.MaxWait.Seconds(), nil
}

func (t tiresias) queue(attained float64) int {
	i, found := slices.BinarySearch(t.limits, attained)
	if found {
		i++
	}
	return i
}

// promotion returns when a job that waits since a time returns to the first queue.
func (t tiresias) promotion(j *scheduler.JobState, since time.Duration) time.Duration {
	if t.promote == 0 || j.Attained == 0 {
		return policy.Never
	}
	return policy.After(since, t.promote*j.Attained/float64(j.Job.Devices))
}

// wake returns when the first running job reaches its limit, or can be preempted after a
// promotion, or the first waiting job is promoted.
func (t tiresias) wake(s *scheduler.Snapshot, jobs iter.Seq[*Entry]) time.Duration {
	at := policy.Never
	waiting := false
	for r := range jobs {
		if r.Grant == nil {
			waiting = true
			if p := t.promotion(r.Job, r.WaitsSince(s)); p > s.Now {
				at = min(at, p)
			}
		}
	}
	for r := range jobs {
		if !waiting || r.Grant == nil {
			continue
		}
		q := t.queue(r.Job.Attained)
		if q < len(t.limits) {
			at = min(at, policy.After(s.Now, (t.limits[q]-r.Job.Attained)/float64(r.Grant.Devices())))
		}
		if promoted := q > 0 && r.Key == 0; promoted {
			at = min(at, r.ready+t.quantum)
		}
	}
	return at
}
