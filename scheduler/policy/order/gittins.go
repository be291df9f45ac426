package order

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var Gittins = policy.Info{
	Name:    "gittins",
	Doc:     "tiresias with known service times: in each queue by Gittins index of a service history, discretised 2D-Gittins (Gu et al., NSDI 2019); preempts",
	Reads:   []string{"history"},
	Options: gittinsOptions,
	New:     newGittins,
}

var gittinsOptions = append([]policy.Option{
	{Name: "history", Default: "", Doc: "CSV file of jobs with device_s, or gpus and duration_s, such as simulate --jobs-out writes"},
	{Name: "learn", Default: "true", Doc: "add what the jobs that end here received to the history"},
	{Name: "limits", Default: "57600", Doc: "device-seconds at which a job goes to the next queue, ascending, as 3600/57600; none = one queue"},
	{Name: "quantum", Default: "300", Unit: "s", Max: 1e9, Doc: "seconds a job makes progress before it has to make way"},
}, preemption...)

func newGittins(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(gittinsOptions)
	g := &gittins{learn: v.Bool("learn")}
	quantum := v.Seconds("quantum")
	err := v.Err()
	if text := v.Text("limits"); err == nil && text != "none" {
		g.limits, err = parseLimits(text)
	}
	if err != nil {
		return nil, err
	}
	if path := v.Text("history"); path != "" {
		services, err := readHistory(path)
		if err != nil {
			return nil, err
		}
		g.services = newServices(services)
	}
	g.order, err = Preemptive(d, Ranking{Key: g.key, Wake: g.wake(quantum), Quantum: quantum})
	return g, err
}

// gittins is the Tiresias scheduler of section 3.2 with the Gittins index. Jobs
// are in queues by the device-seconds they have attained, and within a queue in
// the order of the index (services.cost). While the history is empty all indices
// are equal and jobs go by arrival, as in tiresias.
//
// Differs from the authors' simulator (SymbioticLab/Tiresias), which fixes the
// quantum the index is of, and counts what jobs receive in it from their start:
// the index here is Gittins' own, the best over all quanta.
type gittins struct {
	order    scheduler.Policy
	limits   []float64 // device-seconds, ascending
	learn    bool
	learned  time.Duration // when it last did
	ended    []float64     // device-seconds, not in services yet
	services services
}

func (g *gittins) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if g.learn && len(s.Ended) > 0 && (s.Now > g.learned || len(g.services.at)+len(g.ended) == 0) {
		g.learned = s.Now
		g.remember(s.Ended)
	}
	return g.order.Decide(ctx, s)
}

// remember adds what jobs received to the history. A long history is renewed
// only when there is a 64th more to know.
func (g *gittins) remember(ended []scheduler.JobState) {
	for i := range ended {
		g.ended = append(g.ended, ended[i].Attained)
	}
	if len(g.ended) > len(g.services.at)/64 {
		g.services = newServices(slices.Concat(g.ended, g.services.at))
		g.ended = g.ended[:0]
	}
}

// key is the number of the job's queue and, behind the point, its place in it.
func (g *gittins) key(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	queue, found := slices.BinarySearch(g.limits, j.Attained)
	if found {
		queue++
	}
	within := 1.0
	if cost := g.services.cost(j.Attained); !math.IsInf(cost, 1) {
		within = cost / (cost + g.services.mean)
	}
	return float64(queue) + within, nil
}

// wake returns when the order is to be looked at again: while jobs wait for
// others, every quantum, for indices change with every second of service.
func (g *gittins) wake(quantum time.Duration) func(*scheduler.Snapshot, iter.Seq[*Ranked]) time.Duration {
	return func(s *scheduler.Snapshot, jobs iter.Seq[*Ranked]) time.Duration {
		waiting, running := 0, 0
		for r := range jobs {
			if r.Grant == nil {
				waiting++
			} else {
				running++
			}
		}
		if waiting == 0 || running == 0 {
			return policy.Never
		}
		return s.Now + quantum
	}
}
