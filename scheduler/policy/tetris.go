package policy

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name:    "tetris",
		Doc:     "of jobs with parameter servers, on every node to whom fits best what is free there and has little left (Grandl et al., Tetris, SIGCOMM 2014); resizes",
		Servers: ServesOnly,
		New: func(d Deps) (scheduler.Policy, error) {
			return newServed(d, servedInterval, func(b *servedBelief) servedRule {
				return tetris{b, d.Quirks.ToTheMost, d.Quirks.ShareLeft, d.Quirks.TetrisSign}.fill
			}), nil
		},
	})
}

// tetris packs node by node. Of the jobs that are to have more, and for whom the node
// has room, that with the highest score is given one replica and one server, or what it
// lacks of them (sections 3.2 and 3.3 of the paper):
//
//	score = a - (A / P) * p
//
//	a     alignment: the dot product of what it is given and what the node has free, both in shares of the node
//	p     seconds left, with one of each, times the shares of the node that these take
//	A, P  the means of a and p over those jobs
//
// Jobs are to have the fastest numbers they may have in the group of the node.
type tetris struct {
	*servedBelief
	toTheMost, shareLeft, wrongSign bool // quirks
}

// packer is a job that is to have more.
type packer struct {
	*trainee
	wants []numbers // by group, none where it may not be
	left  float64   // seconds, or which part of the job
	align float64   // on the node that is looked at
}

func (p tetris) fill(ctx context.Context, _ *scheduler.Snapshot, f *filling) error {
	packers, err := p.packers(ctx, f)
	if err != nil {
		return err
	}
	for node := range f.nodes {
		for t := p.best(f, packers, node); t != nil; t = p.best(f, packers, node) {
			t.why = "fits best what is free on a node, or has little left"
			f.giveOn(t.trainee, node, p.next(f, t, f.nodes[node].group))
		}
	}
	for _, t := range packers {
		for t.group >= 0 && !p.allows(t.Job, f.groupOf(t.trainee), t.has) { // on the way to what it wants
			f.takeBack(t.trainee, len(t.tasks)-1)
		}
		if !p.toTheMost && t.group < 0 && f.give(t.trainee, oneOfEach) {
			t.why = "one of each apart, since no node has room for both"
		}
	}
	return nil
}

// packers returns the jobs with what they are to have.
func (p tetris) packers(ctx context.Context, f *filling) ([]*packer, error) {
	var out []*packer
	for _, t := range f.jobs {
		k := &packer{trainee: t, wants: make([]numbers, len(f.cluster.Groups)), left: t.Remaining / (t.Done + t.Remaining)}
		for gi := range f.cluster.Groups {
			if !f.mayUse(t, gi) {
				continue
			}
			all, err := p.order(ctx, t.Job, &f.cluster.Groups[gi])
			if err != nil {
				return nil, err
			}
			k.wants[gi] = all[0]
		}
		if !p.shareLeft {
			var err error
			if k.left, err = p.sizeOf(ctx, f, t); err != nil {
				return nil, err
			}
		}
		out = append(out, k)
	}
	return out, nil
}

// sizeOf returns the seconds t has left with one of each, where it is fastest so; where
// nothing is believed, as many as it received device-seconds.
func (p tetris) sizeOf(ctx context.Context, f *filling, t *trainee) (float64, error) {
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
func (p tetris) next(f *filling, t *packer, group int) numbers {
	switch {
	case !f.mayUse(t.trainee, group):
		return numbers{}
	case p.toTheMost && p.allows(t.Job, &f.cluster.Groups[group], t.has.plus(oneOfEach)):
		return oneOfEach
	case p.toTheMost:
		return numbers{}
	}
	want := t.wants[group]
	return numbers{min(want.replicas-t.has.replicas, 1), min(want.servers-t.has.servers, 1)}
}

// best returns who is given something on a node next, nil = nobody.
func (p tetris) best(f *filling, packers []*packer, node int) *packer {
	n := &f.nodes[node]
	if n.down {
		return nil
	}
	var who []*packer
	var sumAlign, sumLeft float64
	g := &f.cluster.Groups[n.group]
	for _, t := range packers {
		more := p.next(f, t, n.group)
		if more == (numbers{}) || !f.room(t.trainee, node, more) {
			continue
		}
		t.align = alignment(n, g, t.Job, more)
		who, sumAlign, sumLeft = append(who, t), sumAlign+t.align, sumLeft+t.weight(g)
	}
	weight := 0.0
	if sumLeft > 0 {
		weight = -sumAlign / sumLeft
	}
	if p.wrongSign {
		weight = -weight
	}
	var best *packer
	most := math.Inf(-1)
	for _, t := range who {
		if score := t.align + weight*t.weight(g); best == nil || score > most {
			best, most = t, score
		}
	}
	return best
}

// weight returns what is left of t times the shares of a node that one of each take.
func (t *packer) weight(g *spec.NodeGroup) float64 {
	devices, cpus, bytes := nodeShares(g, t.Job, oneOfEach)
	return t.left * (devices + cpus + bytes)
}

// alignment returns the dot product of what is given of a node and what it has free.
func alignment(n *nodeRoom, g *spec.NodeGroup, j *spec.Job, more numbers) float64 {
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
func nodeShares(g *spec.NodeGroup, j *spec.Job, n numbers) (devices, cpus, bytes float64) {
	each, _ := takes(j, false)
	host, has := j.HostFor(n.replicas, n.servers), g.Host()
	if g.CPUs > 0 {
		cpus = float64(host.MilliCPUs) / float64(has.MilliCPUs)
	}
	if g.HostBytes > 0 {
		bytes = float64(host.Bytes) / float64(has.Bytes)
	}
	return float64(each*n.replicas) / float64(g.Devices), cpus, bytes
}
