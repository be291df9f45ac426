package paramserver

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Tetris is the registry entry of policy tetris.
var Tetris = policy.Info{
	Name:    "tetris",
	Doc:     "parameter servers only: multi-resource packing, on each node the job with the best alignment and little remaining work (Grandl et al., Tetris, SIGCOMM 2014); resizes",
	Servers: policy.ServesOnly,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return New(d, interval, func(b *Speeds) Rule {
			rules := policy.VariantOf[Variant](d)
			if rules.TetrisScore == nil {
				rules.TetrisScore = tetrisScore
			}
			return tetris{b, rules}.fill
		}), nil
	},
}

// tetris packs node by node. Among the jobs that want more tasks and fit on the node, the
// job with the highest score gets one replica and one server, or one of the two if it
// wants no more of the other (sections 3.2 and 3.3 of the paper):
//
//	score = a - (A / P) * p
//
//	a     alignment: dot product of demand and free resources, both as shares of the node
//	p     remaining seconds with one of each, times the shares of the node that these need
//	A, P  means of a and p over these jobs
//
// A job wants the fastest Counts that it may have in the group of the node.
type tetris struct {
	*Speeds
	rules Variant
}

// tetrisScore is the score of the paper.
func tetrisScore(alignment, size float64) float64 { return alignment - size }

// packer is a job that wants more tasks.
type packer struct {
	*PackedJob
	target    []Counts // by group, zero if it may not run there
	remaining float64  // seconds, or Variant.Left
	align     float64  // on the present node
}

func (p tetris) fill(ctx context.Context, _ *scheduler.Snapshot, f *Packing) error {
	packers, err := p.packers(ctx, f)
	if err != nil {
		return err
	}
	for node := range f.nodes {
		for t := p.best(f, packers, node); t != nil; t = p.best(f, packers, node) {
			t.Why = "highest score of alignment and remaining work on its node"
			f.giveOnNode(t.PackedJob, node, p.next(f, t, f.nodes[node].group))
		}
	}
	for _, t := range packers {
		for t.Group >= 0 && !p.Allows(t.Job, f.GroupOf(t.PackedJob), t.Has) { // Counts between one of each and the target need not be allowed
			f.TakeBack(t.PackedJob, len(t.Tasks)-1)
		}
		if !p.rules.UpToLimit && t.Group < 0 && f.Give(t.PackedJob, OneOfEach) {
			t.Why = "one replica and one server on different nodes, since no node has room for both"
		}
	}
	return nil
}

// packers returns the jobs with their targets.
func (p tetris) packers(ctx context.Context, f *Packing) ([]*packer, error) {
	var out []*packer
	for _, t := range f.Jobs {
		k := &packer{PackedJob: t, target: make([]Counts, len(f.Cluster.Groups))}
		for gi := range f.Cluster.Groups {
			if !f.mayUse(t, gi) {
				continue
			}
			all, err := p.Order(ctx, t.Job, &f.Cluster.Groups[gi])
			if err != nil {
				return nil, err
			}
			k.target[gi] = all[0]
		}
		if p.rules.Left != nil {
			k.remaining = p.rules.Left(t.Done, t.Remaining)
		} else if left, err := p.sizeOf(ctx, f, t); err == nil {
			k.remaining = left
		} else {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// sizeOf returns the remaining seconds of t with one of each in the fastest group; without
// a prediction its attained device-seconds.
func (p tetris) sizeOf(ctx context.Context, f *Packing, t *PackedJob) (float64, error) {
	switch rate, err := p.rateOfOneEach(ctx, f, t); {
	case err != nil:
		return 0, err
	case rate == 0:
		return t.Attained, nil
	default:
		return t.Remaining / rate, nil
	}
}

// next returns the next tasks of t in a group: one of each, or one of the kind it lacks;
// none once it has its target, or if it may not run there.
func (p tetris) next(f *Packing, t *packer, group int) Counts {
	switch {
	case !f.mayUse(t.PackedJob, group):
		return Counts{}
	case p.rules.UpToLimit && p.Allows(t.Job, &f.Cluster.Groups[group], t.Has.Plus(OneOfEach)):
		return OneOfEach
	case p.rules.UpToLimit:
		return Counts{}
	}
	want := t.target[group]
	return Counts{min(want.Replicas-t.Has.Replicas, 1), min(want.Servers-t.Has.Servers, 1)}
}

// best returns the job with the highest score on a node, nil = none.
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

// weight returns the remaining work of t times the shares of a node for one of each.
func (t *packer) weight(g *spec.NodeGroup) float64 {
	devices, cpus, bytes := nodeShares(g, t.Job, OneOfEach)
	return t.remaining * (devices + cpus + bytes)
}

// alignment returns the dot product of the demand of more tasks and the free resources.
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

// nodeShares returns the shares of a node that n tasks of j need; 0 for resources without
// a limit.
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
