package candidate

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// taken returns the host resources per device of a configuration: the CPUs of its
// prediction, and for offloading plans the share of the node's memory that the planner
// allows.
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

// loadOf returns the largest share of a job in the devices, CPUs and memory of g, in
// devices. each is the host resources per device.
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

// worthCPUs is the least speed-up by twice the CPUs for which a plan gets them.
const worthCPUs = 1.01

// withCPUs replaces the candidates with offloading plans by several with different
// numbers of CPUs, on which their speed depends. The CPUs per device begin at the job's
// need, at least one, and double up to those of a node while the plan becomes faster.
// Options are unchanged if the group's CPUs are unlimited, or if the oracle's answer
// does not depend on CPUs.
func (f *Finder) withCPUs(ctx context.Context, group int, g *spec.NodeGroup, j *spec.Job, options []Config, allowed func(spec.Plan) bool) ([]Config, error) {
	if !f.Cpus || g.CPUs < 1 {
		return options, nil
	}
	var out []Config
	for _, o := range options {
		if !offloads(o.Plan) || o.Shape.CPUs > 0 {
			out = append(out, o)
			continue
		}
		levels, err := f.cpuLevels(ctx, group, g, j, o, allowed)
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

// leastCPUs returns the least number of CPUs per device of a candidate of j that has CPUs.
func leastCPUs(j *spec.Job) int { return max(1, int((j.Host.MilliCPUs+999)/1000)) }

// cpuLevels returns an offloading candidate with increasing numbers of CPUs.
func (f *Finder) cpuLevels(ctx context.Context, group int, g *spec.NodeGroup, j *spec.Job, o Config, allowed func(spec.Plan) bool) (levels []Config, err error) {
	for each := leastCPUs(j); each <= g.CPUs/o.Shape.Most(); each *= 2 {
		r := RequestFor(j, g, o.Devices)
		r.Shape = o.Shape
		r.Shape.CPUs = each * o.Devices
		found, err := f.Query(ctx, group, g, r, j.Host, allowed)
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
