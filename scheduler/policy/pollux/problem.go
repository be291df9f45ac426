package pollux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// problem is the search of one decision.
type problem struct {
	*pollux
	ctx    context.Context
	s      *scheduler.Snapshot
	jobs   []*job
	room   []int       // devices of each node that is up
	hosts  []spec.Host // host resources of each node; nil = no job needs any
	group  []int       // of each node
	base   *schedule   // the present rows
	free   []int       // scratch of repair and mutation: free devices of each node
	host   []spec.Host // scratch: free host resources
	users  []int       // scratch: jobs on each node; in repair those on several nodes
	active []int       // scratch: the evaluation that saw a node in use
	edits  []edit      // scratch of mutate

	rawRows    []row  // of the schedule that is mutated
	rawRoom    []cell // their cells
	legalCells []cell // scratch of legal
	order      []int  // scratch of legal

	evals int
	err   error // the first error of the oracle
}

// job is a job of a problem.
type job struct {
	*scheduler.JobState
	index   int
	elastic bool
	layouts []layout // configurations of a job that is not elastic
	blind   bool     // layouts are guesses
	warning string
	least   int     // fewest devices it can run on
	most    int     // most devices
	nodes   int     // most nodes
	scale   float64 // dominant share per device times the nodes
	factor  float64 // r, for rows other than the present one
	fair    float64 // devices of the fair share
	unit    float64 // goodput on the fair share; 0 = unknown, goodput counts as linear

	rows   map[string]*row   // by cells
	values map[string]*value // by group and devices of each node, most first
	none   *row              // no devices
	base   *row
}

// layout is a configuration of a job that trains its own batch.
type layout struct {
	config *candidate.Config
	counts []int // devices of each node, most first
}

// problem returns the problem of a snapshot. Jobs are in the order in which repair serves
// them: by attained service, then by arrival, as in the artifact.
func (p *pollux) problem(ctx context.Context, s *scheduler.Snapshot) (*problem, error) {
	idle := s.Idle()
	pr := &problem{pollux: p, ctx: ctx, s: s, room: idle.Free, group: idle.Group}
	n := len(pr.room)
	pr.free, pr.users, pr.active = make([]int, n), make([]int, n), make([]int, n)
	states := slices.Clone(s.Jobs())
	slices.SortStableFunc(states, func(a, b *scheduler.JobState) int { return cmp.Compare(a.Attained, b.Attained) })
	for i, st := range states {
		j := &job{JobState: st, index: i, rows: map[string]*row{}, values: map[string]*value{}}
		pr.jobs = append(pr.jobs, j)
		if st.Job.Host != (spec.Host{}) && pr.hosts == nil {
			pr.hosts, pr.host = make([]spec.Host, n), make([]spec.Host, n)
			for node := range pr.hosts {
				pr.hosts[node] = idle.Host(node)
			}
		}
	}
	for _, j := range pr.jobs {
		if err := pr.prepare(j); err != nil {
			return nil, err
		}
	}
	pr.base = pr.baseSchedule()
	return pr, pr.err
}

// prepare sets the configurations and scales of j.
func (pr *problem) prepare(j *job) error {
	share := dominantShare(pr.s.Cluster, j.Job.Host)
	j.scale = share * float64(pr.s.Cluster.Nodes())
	j.fair = math.Ceil(1 / share / float64(len(pr.jobs)))
	age, cost := (pr.s.Now - j.Job.Submit).Seconds(), j.StartCost.Seconds()
	j.factor = 1
	if starts := j.Grant == nil && j.Attained == 0; age+cost > 0 && (!starts || pr.rules.StartIsRestart) {
		j.factor = max(age-float64(j.Restarts)*cost, 0) / (age + cost)
	}
	if err := pr.configure(j); err != nil {
		return err
	}
	j.nodes = pr.mostNodes
	if !j.elastic {
		j.least, j.most = math.MaxInt, 0
		fewest := math.MaxInt
		for i := range j.layouts {
			l := &j.layouts[i]
			j.least, j.most = min(j.least, l.config.Devices), max(j.most, l.config.Devices)
			fewest = min(fewest, len(l.counts))
		}
		if len(j.layouts) > 0 {
			j.nodes = max(j.nodes, fewest)
		}
	}
	return pr.setUnit(j)
}

// dominantShare returns the largest share of the devices, CPUs and memory of a cluster that a
// device with its need of the host takes. It takes no share of what a group does not limit.
func dominantShare(c spec.Cluster, need spec.Host) float64 {
	total := func(ofNode func(spec.Host) int64) (sum float64) {
		for i := range c.Groups {
			n := ofNode(c.Groups[i].Host())
			if n >= spec.Unlimited {
				return math.Inf(1)
			}
			sum += float64(n) * float64(c.Groups[i].Count)
		}
		return sum
	}
	cpus := total(func(h spec.Host) int64 { return h.MilliCPUs })
	bytes := total(func(h spec.Host) int64 { return h.Bytes })
	return max(1/float64(c.Devices()), float64(need.MilliCPUs)/cpus, float64(need.Bytes)/bytes)
}

// configure finds the configurations of j: of one that chooses its batch all up to a number
// of devices, of others those of its curve, or else a guess.
func (pr *problem) configure(j *job) (err error) {
	if pr.elastic != nil {
		if j.least, j.most, err = pr.elasticRange(j); err != nil {
			return err
		}
		if j.elastic = j.most > 0; j.elastic {
			return nil
		}
	}
	cv, err := pr.finder.Curve(pr.ctx, pr.s.Cluster, j.Job)
	if err != nil {
		return err
	}
	if len(cv.Configs) > 0 {
		j.layouts = pr.curves.Of(cv, func() []layout { return layoutsOf(cv.Configs) })
		return nil
	}
	guesses, warning, err := pr.finder.Guess(pr.ctx, pr.s, j.JobState)
	j.layouts, j.blind, j.warning = layoutsOf(guesses), true, warning
	return err
}

func layoutsOf(configs []candidate.Config) []layout {
	out := make([]layout, len(configs))
	for i := range configs {
		out[i] = layout{&configs[i], configs[i].Shape.PerNode()}
	}
	return out
}

// elasticRange returns the least and the most devices on which a job that chooses its batch
// may run, packed, in any group; most is 0 if there are none.
func (pr *problem) elasticRange(j *job) (least, most int, err error) {
	for gi := range pr.s.Cluster.Groups {
		g := &pr.s.Cluster.Groups[gi]
		room := g.Room(j.Job.Host)
		if !j.Job.Accepts(g) || room < 1 {
			continue
		}
		runs := func(n int) bool {
			_, _, e := pr.elastic.Goodput(pr.ctx, j.JobState, g, spec.Packed(n, room))
			if e != nil && !errors.Is(e, perfmodel.ErrNotCovered) && err == nil {
				err = fmt.Errorf("policy: pollux: %w", e)
			}
			return e == nil
		}
		lo, hi := interval(g.Count*room, runs)
		if hi > 0 && (most == 0 || lo < least) {
			least = lo
		}
		most = max(most, hi)
	}
	return least, most, err
}

// interval returns the bounds of the numbers from 1 to limit for which holds is true, 0, 0
// if there are none. They are taken to be an interval with a power of two in it.
func interval(limit int, holds func(int) bool) (least, most int) {
	for n := 1; n <= limit; n *= 2 {
		if holds(n) {
			least, most = cmp.Or(least, n), n
		} else if most > 0 {
			break
		}
	}
	for step := most / 2; step > 0; step /= 2 { // the true numbers above most are below twice that
		if most+step <= limit && holds(most+step) {
			most += step
		}
	}
	for step := least / 4; step > 0; step /= 2 { // those below least are above half of it
		if holds(least - step) {
			least -= step
		}
	}
	return least, most
}

// setUnit sets the goodput of j on its fair share: on the most devices up to it that j may
// have, packed, in the group where that is fastest, times the devices that are missing.
func (pr *problem) setUnit(j *job) error {
	for gi := range pr.s.Cluster.Groups {
		g := &pr.s.Cluster.Groups[gi]
		room := g.Room(j.Job.Host)
		if !j.Job.Accepts(g) || room < 1 || g.Count*room < j.least {
			continue
		}
		n := max(min(int(j.fair), j.most, g.Count*room), j.least)
		if j.elastic {
			if v := pr.valueOf(j, gi, spec.Packed(n, room).PerNode()); v != nil {
				j.unit = max(j.unit, v.goodput*j.fair/float64(v.devices))
			}
			continue
		}
		best := 0.0
		size := 0
		for i := range j.layouts {
			if c := j.layouts[i].config; c.Group == gi && !j.blind && c.Devices <= n && (c.Devices > size || c.Devices == size && c.Rate > best) {
				size, best = c.Devices, c.Rate
			}
		}
		if size > 0 {
			j.unit = max(j.unit, best*j.fair/float64(size))
		}
	}
	return pr.err
}
