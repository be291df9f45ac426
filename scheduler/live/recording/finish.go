package recording

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// finish returns the recording.
func (s *state) finish() (*Recording, error) {
	r := &s.out
	r.Epoch = s.from
	for _, j := range s.jobs {
		if j.submitted.Before(r.Epoch) {
			r.Epoch = j.submitted
		}
	}
	r.From, r.To = s.since(s.from), s.since(s.now)
	nodes := make([]live.Node, len(s.nodes))
	for i, n := range s.nodes {
		nodes[i] = n.Node
	}
	cluster, number, grant := live.Arrange(nodes)
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	r.Cluster, r.Failures, r.Drains = cluster, sim.OutageTable{}, sim.OutageTable{}
	for _, n := range s.nodes {
		s.addOutages(n, number[n.Name])
		s.addUsage(n, number[n.Name])
	}
	slices.SortFunc(r.Usage, func(a, b sim.Occupation) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Node, b.Node)) })
	for id, j := range s.jobs {
		if len(j.runs) == 0 && !j.cancelled && (!j.ended.IsZero() || j.last.Paused || j.last.Phase == live.Running) {
			r.LeftOut = append(r.LeftOut, id)
			continue
		}
		out, err := s.job(j, grant)
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", id, err)
		}
		r.Jobs = append(r.Jobs, out)
	}
	slices.Sort(r.LeftOut)
	slices.SortFunc(r.Jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID)) })
	return r, nil
}

// job returns a job as far as it is known.
func (s *state) job(j *jobState, grant func(*spec.Job, string, live.Slots) (*scheduler.Grant, error)) (Job, error) {
	out := j.out
	out.Submit, out.Ended, out.Early = s.since(j.submitted), !j.ended.IsZero(), s.early(&j.first)
	if out.Cancelled = -1; j.cancelled {
		out.Cancelled = s.since(j.ended)
	}
	out.Restarts, out.Failures = max(j.last.Restarts-j.first.Restarts, 0), max(j.last.Failures-j.first.Failures, 0)
	out.Trained, out.Seen = -1, s.since(j.seen)
	switch {
	case j.done < 0:
	case !out.Early:
		out.Trained = j.done
	case j.first.Done != nil:
		out.Trained = j.done - *j.first.Done
	}
	for _, run := range j.runs {
		g, err := grant(&out.Job, run.plan, run.slots)
		if err != nil {
			return out, err
		}
		if run.end.IsZero() {
			run.end = s.now
		}
		out.Runs = append(out.Runs, Run{s.since(run.start), s.since(run.end), run.cost, g})
	}
	return out, nil
}

// early reports whether a job had runs that are not recorded when it was seen first.
func (s *state) early(first *job) bool {
	return first.RunPlan != "" && (first.Started.Before(s.from) || first.Restarts+first.Failures > 0)
}

// addOutages adds the outages of a node. They end with the recording at the latest: every job that
// ran in it then has the nodes to run on.
func (s *state) addOutages(n *nodeState, number int) {
	for _, o := range n.outages {
		out := sim.Outage{Up: s.since(s.now)}
		if !o.down.IsZero() {
			out.Down = s.since(o.down)
		}
		if !o.up.IsZero() {
			out.Up = s.since(o.up)
		}
		table := s.out.Failures
		if !o.drained.IsZero() {
			table, out.Notice = s.out.Drains, o.down.Sub(o.drained)
		}
		if out.Up > out.Down {
			table[number] = append(table[number], out)
		}
	}
}

// addUsage adds what others held of a node. They give it back when the recording ends.
func (s *state) addUsage(n *nodeState, number int) {
	for _, u := range n.used {
		host := n.Type.Host()
		u.host = spec.Host{MilliCPUs: min(u.host.MilliCPUs, host.MilliCPUs), Bytes: min(u.host.Bytes, host.Bytes)}
		s.out.Usage = append(s.out.Usage, sim.Occupation{At: s.since(u.at), Slot: scheduler.Slot{Node: number, Devices: u.devices, Host: u.host}})
	}
	if len(n.used) > 0 && n.used[len(n.used)-1].devices+int(n.used[len(n.used)-1].host.MilliCPUs) > 0 {
		s.out.Usage = append(s.out.Usage, sim.Occupation{At: s.since(s.now), Slot: scheduler.Slot{Node: number}})
	}
}

func (s *state) since(t time.Time) time.Duration { return max(t.Sub(s.out.Epoch), 0) }
