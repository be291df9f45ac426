package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// scale is the size of a simulation.
type scale struct {
	nodes, perNode, jobs int
	load                 float64
	seed                 uint64
}

// The two types of devices.
const slow, fast = "slow", "fast"

// speeds are relative: fast devices run every job in half of the time.
var speeds = map[string]float64{slow: 1, fast: 2}

// cluster returns one half slow and one half fast nodes.
func (s scale) cluster() spec.Cluster {
	group := func(nodes int, name string) spec.NodeGroup {
		return spec.NodeGroup{Count: nodes, Devices: s.perNode, Accelerator: spec.Accelerator{Name: name}}
	}
	return spec.Cluster{Groups: []spec.NodeGroup{group(s.nodes-s.nodes/2, slow), group(s.nodes/2, fast)}}
}

// workload draws the jobs.
func (s scale) workload() ([]spec.Job, error) {
	capacity := 0.0
	for _, g := range s.cluster().Groups {
		capacity += float64(g.Count*g.Devices) * speeds[g.Accelerator.Name]
	}
	o := synthetic.Options{Seed: s.seed, Jobs: s.jobs, Sizes: synthetic.BloxSizes()}
	if err := o.SetLoad(s.load, capacity); err != nil {
		return nil, err
	}
	return synthetic.Workload(o)
}

// contender is a policy and the rounds it decides in.
type contender struct {
	spec  policy.Spec
	round string // seconds; "" = at every event
}

func (c contender) String() string {
	if c.round == "" {
		return c.spec.String()
	}
	return fmt.Sprintf("%s in %s s rounds", c.spec, c.round)
}

// parseContenders parses policies separated by commas, with round=SECONDS as an extra
// option.
func parseContenders(text string) ([]contender, error) {
	var out []contender
	for _, item := range strings.Split(text, ",") {
		var c contender
		var rest []string
		for _, part := range strings.Split(item, ":") {
			sec, ok := strings.CutPrefix(part, "round=")
			if !ok {
				rest = append(rest, part)
				continue
			}
			v, err := strconv.ParseFloat(sec, 64)
			if err != nil || !(v > 0 && v < 1e9) {
				return nil, fmt.Errorf("%s: %q is not a number of seconds above 0", item, sec)
			}
			c.round = sec
		}
		specs, err := builtin.Policies.Parse(strings.Join(rest, ":"))
		if err != nil {
			return nil, err
		}
		c.spec = specs[0]
		out = append(out, c)
	}
	return out, nil
}

// outcome is the result and the cost of a simulation.
type outcome struct {
	sec        float64 // of the processor
	events     int     // arrivals and completions
	finished   int
	queue      float64 // mean number of waiting jobs from the first arrival to the last
	meanJCTSec float64
	peak       float64 // bytes of memory, the most so far
}

// micros returns the processor time per event in microseconds.
func (o outcome) micros() float64 { return o.sec * 1e6 / float64(o.events) }

// simulate runs the workload under c.
func (s scale) simulate(ctx context.Context, jobs []spec.Job, c contender) (outcome, error) {
	began, _, err := used()
	if err != nil {
		return outcome{}, err
	}
	x, err := experiment.New(ctx, experiment.Options{
		Policy: c.spec.String(), Round: c.round, Truth: fmt.Sprintf("duration:%s=%g,%s=%g", slow, speeds[slow], fast, speeds[fast]),
		Given: experiment.Given{Jobs: jobs, Cluster: s.cluster()},
	})
	if err != nil {
		return outcome{}, err
	}
	results, err := x.Run(ctx, experiment.Hooks{})
	if err != nil {
		return outcome{}, err
	}
	r := results[0]
	ended, peak, err := used()
	out := outcome{sec: (ended - began).Seconds(), queue: meanQueue(r), peak: peak}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Finished {
			out.finished++
			out.meanJCTSec += j.JCT().Seconds()
		}
	}
	out.events = len(r.Jobs) + out.finished
	out.meanJCTSec /= float64(max(out.finished, 1))
	return out, err
}

// meanQueue returns the mean number of waiting jobs between the first arrival and
// the last, 0 if that is one instant.
func meanQueue(r *sim.Result) float64 {
	if len(r.Jobs) == 0 {
		return 0
	}
	first, last := r.Jobs[0].Job.Submit, r.Jobs[len(r.Jobs)-1].Job.Submit
	area := 0.0
	for i, u := range r.Usage {
		end := last
		if i+1 < len(r.Usage) {
			end = min(end, r.Usage[i+1].At)
		}
		area += float64(u.Waiting) * max(end-u.At, 0).Seconds()
	}
	if last == first {
		return 0
	}
	return area / (last - first).Seconds()
}
