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

// Gittins is the registry entry of policy gittins.
var Gittins = policy.Info{
	Name:    "gittins",
	Doc:     "Tiresias with a known distribution of service: queues as in tiresias, jobs in a queue by Gittins index, discretised 2D-Gittins (Gu et al., NSDI 2019); preempts",
	Reads:   []string{"history"},
	Options: gittinsOptions,
	New:     newGittins,
}

var gittinsOptions = append([]policy.Option{
	{Name: "history", Default: "", Doc: "CSV file of finished jobs with column device_s, or gpus and duration_s; simulate --jobs-out writes one"},
	{Name: "learn", Default: "true", Doc: "add the service of jobs that end in this run to the history"},
	{Name: "limits", Default: "57600", Example: "3600/57600", Doc: "device-seconds at which a job moves to the next queue, ascending; none = one queue"},
	{Name: "quantum", Default: "300", Unit: "s", Max: 1e9, Doc: "seconds a job makes progress before it may be preempted"},
}, preemption...)

func newGittins(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(gittinsOptions)
	g := &gittins{learn: v.Bool("learn")}
	quantum := v.Duration("quantum")
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

// gittins is Tiresias with the Gittins index (section 3.2). Attained service puts a job
// into a queue; within a queue the highest index, that is the lowest services.cost, runs
// first. Without a history all indices are equal and jobs run by arrival, as in tiresias.
//
// Differs from the authors' simulator (SymbioticLab/Tiresias), which computes the index
// for one fixed quantum and counts service within it from the start of the job. Here the
// index is the maximum over all quanta, as Gittins defines it.
type gittins struct {
	order    scheduler.Policy
	limits   []float64 // device-seconds, ascending
	learn    bool
	learned  time.Duration // when ended jobs were last added
	ended    []float64     // device-seconds of ended jobs, not in services yet
	services services
}

func (g *gittins) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	if g.learn && len(s.Ended) > 0 && (s.Now > g.learned || len(g.services.at)+len(g.ended) == 0) {
		g.learned = s.Now
		g.remember(s.Ended)
	}
	return g.order.Decide(ctx, s)
}

// remember adds the service of ended jobs to the history. The distribution is computed
// again only when the history has grown by 1/64, since that takes linear time.
func (g *gittins) remember(ended []scheduler.JobState) {
	for i := range ended {
		g.ended = append(g.ended, ended[i].Attained)
	}
	if len(g.ended) > len(g.services.at)/64 {
		g.services = newServices(slices.Concat(g.ended, g.services.at))
		g.ended = g.ended[:0]
	}
}

// key is the number of the job's queue, plus cost/(cost+mean) in [0, 1] for its place in
// the queue.
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

// wake asks for a decision after every quantum while some jobs run and others wait,
// because indices change with every second of service.
func (g *gittins) wake(quantum time.Duration) func(*scheduler.Snapshot, iter.Seq[*Entry]) time.Duration {
	return func(s *scheduler.Snapshot, jobs iter.Seq[*Entry]) time.Duration {
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
