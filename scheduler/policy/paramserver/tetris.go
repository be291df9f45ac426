package paramserver

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var Tetris = policy.Info{
	Name:    "tetris",
	Doc:     "parameter servers only: on each node the job that fits its free resources best and has little left (Grandl et al., Tetris, SIGCOMM 2014); resizes",
	Servers: policy.ServesOnly,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return New(d, interval, func(b *Belief) Rule {
			rules := policy.VariantOf[Variant](d)
			if rules.TetrisScore == nil {
				rules.TetrisScore = tetrisScore
			}
			return tetris{b, rules}.fill
		}), nil
	},
}

// tetris packs node by node. Among the jobs that lack something and fit on the node, the
// one with the highest score gets one replica and one server, or what it lacks of them
// (sections 3.2 and 3.3 of the paper):
//
//	score = a - (A / P) * p
//
//	a     alignment: the dot product of what it is given and what the node has free, both in shares of the node
//	p     seconds left, with one of each, times the shares of the node that these take
//	A, P  the means of a and p over those jobs
//
// Jobs are to have the fastest numbers they may have in the group of the node.
type tetris struct {
	*Belief
	rules Variant
}

// tetrisScore is the score of the paper.
func tetrisScore(alignment, size float64) float64 { return alignment - size }

// packer is a job that is to have more.
type packer struct {
	*PackedJob
	wants []Counts // by group, none where it may not be
	left  float64  // seconds, or which part of the job
	align float64  // on the node that is looked at
}

func (p tetris) fill(ctx context.Context, _ *scheduler.Snapshot, f *Packing) error {
	packers, err := p.packers(ctx, f)
	if err != nil {
		return err
	}
	for node := range f.nodes {
		for t := p.best(f, packers, node); t != nil; t = p.best(f, packers, node) {
			t.Why = "fits best what is free on a node, or has little left"
			f.giveOn(t.PackedJob, node, p.next(f, t, f.nodes[node].group))
		}
	}
	for _, t := range packers {
		for t.Group >= 0 && !p.Allows(t.Job, f.GroupOf(t.PackedJob), t.Has) { // on the way to what it wants
			f.TakeBack(t.PackedJob, len(t.Tasks)-1)
		}
		if !p.rules.ToTheMost && t.Group < 0 && f.Give(t.PackedJob, OneOfEach) {
			t.Why = "one of each apart, since no node has room for both"
		}
	}
	return nil
}

// packers returns the jobs with what they are to have.
func (p tetris) packers(ctx context.Context, f *Packing) ([]*packer, error) {
	var out []*packer
	for _, t := range f.Jobs {
		k := &packer{PackedJob: t, wants: make([]Counts, len(f.Cluster.Groups))}
		for gi := range f.Cluster.Groups {
			if !f.mayUse(t, gi) {
				continue
			}
			all, err := p.Order(ctx, t.Job, &f.Cluster.Groups[gi])
			if err != nil {
				return nil, err
			}
			k.wants[gi] = all[0]
		}
		if p.rules.Left != nil {
			k.left = p.rules.Left(t.Done, t.Remaining)
		} else if left, err := p.sizeOf(ctx, f, t); err == nil {
			k.left = left
		} else {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// sizeOf returns the seconds t has left with one of each, where it is fastest so; where
// nothing is believed, as many as it received device-seconds.
func (p tetris) sizeOf(ctx context.Context, f *Packing, t *PackedJob) (float64, error) {
	switch rate, err := p.withOne(ctx, f, t); {
	case err != nil:
		return 0, err
	case rate == 0:
		return t.Attained, nil
	default:
		return t.Remaining / rate, nil
	}
}

// next returns what t is given next in a group: one of each, or of what it lacks alone;
// nothing once it has all, or where it may not be.
func (p tetris) next(f *Packing, t *packer, group int) Counts {
	switch {
	case !f.mayUse(t.PackedJob, group):
		return Counts{}
	case p.rules.ToTheMost && p.Allows(t.Job, &f.Cluster.Groups[group], t.Has.Plus(OneOfEach)):
		return OneOfEach
	case p.rules.ToTheMost:
		return Counts{}
	}
	want := t.wants[group]
	return Counts{min(want.Replicas-t.Has.Replicas, 1), min(want.Servers-t.Has.Servers, 1)}
}

// best returns the job that gets something on a node next, nil = none.
func (p tetris) best(f *Packing, packers []*packer, node int) *packer {
	n := &f.nodes[node]
	if n.down {
		return nil
	}
	var fitting []*packer
	var sumAlign, sumLeft float64
	g := &f.Cluster.Groups[n.group]
	for _, t := range packers {
		more := p.next(f, t, n.group)
		if more == (Counts{}) || !f.room(t.PackedJob, node, more) {
			continue
		}
		t.align = alignment(n, g, t.Job, more)
		fitting, sumAlign, sumLeft = append(fitting, t), sumAlign+t.align, sumLeft+t.weight(g)
	}
	weight := 0.0
	if sumLeft > 0 {
		weight = sumAlign / sumLeft
	}
	var best *packer
	most := math.Inf(-1)
	for _, t := range fitting {
		if score := p.rules.TetrisScore(t.align, weight*t.weight(g)); best == nil || score > most {
			best, most = t, score
		}
	}
	return best
}

// weight returns what is left of t times the shares of a node that one of each take.
func (t *packer) weight(g *spec.NodeGroup) float64 {
	devices, cpus, bytes := nodeShares(g, t.Job, OneOfEach)
	return t.left * (devices + cpus + bytes)
}

// alignment returns the dot product of what is given of a node and what it has free.
func alignment(n *nodeRoom, g *spec.NodeGroup, j *spec.Job, more Counts) float64 {
	devices, cpus, bytes := nodeShares(g, j, more)
	sum := devices * float64(n.devices) / float64(g.Devices)
	if cpus > 0 {
		sum += cpus * float64(n.host.MilliCPUs) / float64(g.Host().MilliCPUs)
	}
	if bytes > 0 {
		sum += bytes * float64(n.host.Bytes) / float64(g.Host().Bytes)
	}
	return sum
}

// nodeShares returns the shares of a node that so many of j take; of what is not
// limited they are 0.
func nodeShares(g *spec.NodeGroup, j *spec.Job, n Counts) (devices, cpus, bytes float64) {
	each, _ := takes(j, false)
	host, has := j.HostFor(n.Replicas, n.Servers), g.Host()
	if g.CPUs > 0 {
		cpus = float64(host.MilliCPUs) / float64(has.MilliCPUs)
	}
	if g.HostBytes > 0 {
		bytes = float64(host.Bytes) / float64(has.Bytes)
	}
	return float64(each*n.Replicas) / float64(g.Devices), cpus, bytes
}
