package candidate

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// taken returns what each device takes of its host in a configuration: the CPUs it
// is believed to run with, and if it offloads the share of the node's memory that a
// planner lets it use.
func taken(c *spec.Config, g *spec.NodeGroup) spec.Host {
	n := int64(c.Shape.Total())
	h := spec.Host{MilliCPUs: ceilDiv(c.Shape.Host().MilliCPUs, n), Bytes: ceilDiv(c.Shape.Host().Bytes, n)}
	if offloads(c.Plan) && g.Host().Bytes < spec.Unlimited {
		h.Bytes = max(h.Bytes, g.Host().Bytes/int64(g.Devices))
	}
	return h
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func offloads(p spec.Plan) bool { return p.Normal().Offload != spec.OffloadNone }

// loadOf returns how many devices of g a job takes, counted by whatever it takes the
// largest share of if each of its devices takes so much of the host.
func loadOf(devices int, each spec.Host, g *spec.NodeGroup) float64 {
	has := g.Host()
	share := func(each, has int64) float64 {
		if has >= spec.Unlimited {
			return 0
		}
		return float64(each) * float64(g.Devices) / float64(has)
	}
	return float64(devices) * max(1, share(each.MilliCPUs, has.MilliCPUs), share(each.Bytes, has.Bytes))
}

// worthCPUs is how many times as fast a plan has to be with twice the CPUs to
// be believed to make use of them.
const worthCPUs = 1.01

// withCPUs returns options with those of offloading plans at other numbers of CPUs
// beside them, of which their speed depends: from what the job needs or one for each
// device, doubling up to what a node has, as long as more make them faster. Where the
// CPUs of a group are not limited, and where the oracle tells no difference, options
// are as they were.
func (b *Belief) withCPUs(ctx context.Context, group int, g *spec.NodeGroup, j *spec.Job, options []Config, allowed func(spec.Plan) bool) ([]Config, error) {
	if !b.Cpus || g.CPUs < 1 {
		return options, nil
	}
	var out []Config
	for _, o := range options {
		if !offloads(o.Plan) || o.Shape.CPUs > 0 {
			out = append(out, o)
			continue
		}
		levels, err := b.cpuLevels(ctx, group, g, j, o, allowed)
		if err != nil {
			return nil, err
		}
		if len(levels) == 0 {
			levels = []Config{o}
		}
		out = append(out, levels...)
	}
	return out, nil
}

// cpuLevels returns what becomes of an offloading option with more and more CPUs.
func (b *Belief) cpuLevels(ctx context.Context, group int, g *spec.NodeGroup, j *spec.Job, o Config, allowed func(spec.Plan) bool) (levels []Config, err error) {
	least := max(1, int((j.Host.MilliCPUs+999)/1000))
	for each := least; each <= g.CPUs/o.Shape.Most(); each *= 2 {
		r := RequestFor(j, g, o.Devices)
		r.Shape = o.Shape
		r.Shape.CPUs = each * o.Devices
		found, err := b.Ask(ctx, group, g, r, j.Host, allowed)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 || found[0].Shape.CPUs != r.Shape.CPUs {
			return nil, nil
		}
		if last := len(levels) - 1; last >= 0 && found[0].Rate < worthCPUs*levels[last].Rate {
			return levels, nil
		}
		levels = append(levels, found[0])
	}
	return levels, nil
}
