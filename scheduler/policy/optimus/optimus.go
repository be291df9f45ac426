package optimus

import (
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// OracleInfo is the registry entry of policy optimus-oracle.
var OracleInfo = policy.Info{
	Name:    "optimus-oracle",
	Doc:     "devices one by one to the job with the highest marginal gain, with the true remaining steps (Peng et al., Optimus, EuroSys 2018); resizes and preempts",
	Options: oracleOptions,
	Servers: policy.ServesToo,
	New:     newOptimusOracle,
}

// Info is the registry entry of policy optimus.
var Info = policy.Info{
	Name:    "optimus",
	Doc:     "devices one by one to the job with the highest marginal gain, with remaining steps estimated from the training loss (Peng et al., Optimus, EuroSys 2018); resizes and preempts",
	Options: options,
	Servers: policy.ServesToo,
	New:     newOptimus,
}

var oracleOptions = []policy.Option{
	{Name: "interval", Default: "600", Unit: "s", Max: 1e9, Doc: "seconds between two decisions without an event"},
}

var options = []policy.Option{
	{Name: "interval", Default: "600", Unit: "s", Max: 1e9, Doc: "seconds between two decisions about the sizes of running jobs"},
	{Name: "young", Default: "0.95", Max: 1, Doc: "weight of the gain of a job with too few losses for an estimate of its remaining steps"},
}

func newOptimusOracle(d policy.Deps) (scheduler.Policy, error) {
	p, err := NewSizing(d)
	switch {
	case err != nil:
		return nil, err
	case d.Servers != nil:
		return newParamServerOptimus(d, p), nil
	case policy.VariantOf[Variant](d).EveryRound:
		p.interval = policy.MinWake
	}
	return p, nil
}

func newOptimus(d policy.Deps) (scheduler.Policy, error) {
	p, err := NewSizing(d)
	if err != nil {
		return nil, err
	}
	p.convergence = newConvergence(d.Losses)
	v := d.Values(options)
	if p.young = v.Float("young"); v.Err() != nil {
		return nil, v.Err()
	}
	if d.Servers != nil {
		return newParamServerOptimus(d, p), nil
	}
	return p, nil
}

// NewSizing returns the allocation with the options and variant of d.
func NewSizing(d policy.Deps) (*Sizing, error) {
	v, rules := d.Values(oracleOptions), policy.VariantOf[Variant](d)
	interval := v.Duration("interval")
	return &Sizing{Finder: candidate.NewFinder(d), interval: max(interval, policy.MinWake),
		anyDevices: rules.AnyDevices, nextOnly: rules.NextOnly, last: -policy.Never}, v.Err()
}

// Sizing is the allocation and placement of Optimus (sections 4.1 and 4.2) for jobs
// without parameter servers, as in petuum/adaptdl at commit c793c70. paramServerOptimus is
// for jobs with them. The gain of a job from n to m devices is
//
//	gain = y * Q * (T(n) - T(m)) / ((m - n) * D)
//
//	T  predicted seconds per step
//	Q  remaining steps: convergence.left, or JobState.Remaining for optimus-oracle
//	D  dominant share of a device with the CPUs and host memory it needs, divided by its
//	   share of devices: 1 if the job needs neither
//	y  option young for young jobs, else 1
//
// Decide starts jobs by arrival on the fewest devices they can run on, then gives devices
// to the job with the highest gain until none gains, then places the jobs. Jobs without a
// prediction run as submitted.
//
// With convergence the sizes of running jobs change once per interval, as in the paper, and
// only if that saves more than a restart costs, because estimates change all the time.
// Between that, free devices go to waiting jobs, which in the paper wait for the interval.
type Sizing struct {
	Finder      *candidate.Finder
	sizes       candidate.PerCurve[[][]Size]
	interval    time.Duration
	anyDevices  bool         // Variant.AnyDevices
	nextOnly    bool         // Variant.NextOnly
	convergence *convergence // nil = use the true remaining steps
	young       float64
	last        time.Duration // last decision on the sizes of running jobs
}

// Size is a number of devices a job may run on.
type Size struct {
	Devices int
	Sec     float64            // seconds per step
	options []candidate.Config // fastest first
}

// Grower is a job with the size chosen so far.
type Grower struct {
	*scheduler.JobState
	left       float64 // estimated remaining steps
	weight     float64 // of its gain
	share      float64 // D of its gain
	Keeps      bool    // it keeps its grant
	settled    bool    // growing is not worth a restart
	Arrival    int
	Group      int
	Sizes      []Size // ascending; empty without a prediction
	At         int    // index of the chosen size
	gain       float64
	to         int            // index of the size that gives gain
	Candidates *candidate.Set // only without Sizes
	Granted    *scheduler.Grant
}

func (g *Grower) Devices() int {
	if g.Keeps {
		return g.Grant.Devices()
	}
	if len(g.Sizes) == 0 {
		return g.Job.Devices
	}
	return g.Sizes[g.At].Devices
}

// Decide follows sections 4.1 and 4.2; see Sizing.
func (p *Sizing) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{}
	idle := s.Idle()
	left := make([]int, len(s.Cluster.Groups))
	for gi := range left {
		left[gi] = idle.FreeIn(gi)
	}
	if p.convergence != nil {
		p.convergence.observe(s)
	}
	settled := p.settle(s, idle.Group, left)
	var growers []*Grower
	for i, j := range s.Jobs() {
		g := &Grower{JobState: j, Keeps: true, Group: -1}
		if !settled || j.Grant == nil {
			var err error
			if g, err = p.start(ctx, s, j, idle.Group, left); err != nil {
				return d, err
			}
		}
		if g == nil {
			if settled {
				d.Because(s, j.Job.ID, "too few devices are left for its smallest size until sizes of running jobs change, in %.0f s", (p.last + p.interval - s.Now).Seconds())
			} else {
				d.Because(s, j.Job.ID, "too few devices are left for its smallest size, in order of arrival")
			}
			continue
		}
		g.Arrival = i
		p.estimate(ctx, s, g)
		growers = append(growers, g)
	}
	p.grow(growers, left)
	if p.convergence != nil {
		p.keepSizes(growers, left)
	}
	p.Place(growers, idle, s.Cluster)
	for _, g := range growers {
		if s.Reasons {
			g.explain(s, &d)
		}
		if g.Granted == nil {
			continue
		}
		d.Grants = append(d.Grants, g.Granted)
		if g.Candidates != nil && g.Candidates.Warning != "" {
			d.Warnings = append(d.Warnings, g.Candidates.Warning)
		}
	}
	if len(s.Jobs()) > 0 {
		d.Wake = p.last + p.interval
	}
	return d, nil
}

// settle reports whether running jobs keep their sizes in this decision. If so it subtracts
// their devices from left.
func (p *Sizing) settle(s *scheduler.Snapshot, nodes, left []int) bool {
	if p.convergence == nil || s.Now == p.last || s.Now >= p.last+p.interval {
		p.last = s.Now
		return false
	}
	for _, j := range s.Jobs() {
		if j.Grant != nil {
			left[nodes[j.Grant.Slots[0].Node]] -= j.Grant.Devices()
		}
	}
	return true
}

// estimate sets the remaining steps, the weight and the dominant share of g.
func (p *Sizing) estimate(ctx context.Context, s *scheduler.Snapshot, g *Grower) {
	g.left, g.weight, g.share = g.Remaining, 1, 1
	if g.Keeps {
		return
	}
	if p.convergence != nil {
		young := false
		if g.left, young = p.convergence.left(ctx, g.JobState); young {
			g.weight = p.young
		}
	}
	g.share = DominantShare(&s.Cluster.Groups[g.Group], g.Job.Host)
}

// DominantShare returns the largest share of a group's CPUs, host memory or devices that a
// device with its host resources needs, divided by its share of devices.
func DominantShare(g *spec.NodeGroup, need spec.Host) float64 {
	share := 1.0
	if g.CPUs > 0 {
		share = max(share, float64(need.MilliCPUs)*float64(g.Devices)/(1000*float64(g.CPUs)))
	}
	if g.HostBytes > 0 {
		share = max(share, float64(need.Bytes)*float64(g.Devices)/g.HostBytes)
	}
	return share
}

// keepSizes restores the present sizes of running jobs that would grow but save less than a
// restart costs, and gives the devices of those to the jobs with the next highest gain. Then
// it restores those of jobs that would shrink although the devices are not needed.
func (p *Sizing) keepSizes(growers []*Grower, left []int) {
	stay := func(when func(g *Grower, more int, held *Size) bool) (stayed bool) {
		for _, g := range growers {
			at := -1
			if g.Grant != nil && !g.Keeps {
				at = slices.IndexFunc(g.Sizes, func(s Size) bool { return s.Devices == g.Grant.Devices() })
			}
			if at < 0 || at == g.At {
				continue
			}
			if more := g.Devices() - g.Sizes[at].Devices; when(g, more, &g.Sizes[at]) {
				left[g.Group] += more
				g.At, stayed = at, true
				g.settled = more > 0
			}
		}
		return stayed
	}
	for stay(func(g *Grower, more int, held *Size) bool {
		return more > 0 && g.left*(held.Sec-g.Sizes[g.At].Sec) <= g.StartCost.Seconds()
	}) {
		p.grow(growers, left)
	}
	stay(func(g *Grower, more int, _ *Size) bool { return more < 0 && -more <= left[g.Group] })
}

// explain adds the reason for the devices of g.
func (g *Grower) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	switch {
	case g.Granted == nil:
		d.Because(s, g.Job.ID, "size %d was chosen, but the free devices are too fragmented", g.Devices())
	case g.Granted.Same(g.Grant):
	case len(g.Sizes) == 0:
		d.Because(s, g.Job.ID, "runs as submitted: no prediction")
	default:
		d.Because(s, g.Job.ID, "size %d by marginal gain: %.0f s are left", g.Granted.Devices(), g.left*g.Sizes[g.At].Sec)
	}
}

// start takes the smallest size of j, in its present group, or else in the group where that
// is fastest; nil if it does not fit. nodes has the group of each node.
func (p *Sizing) start(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState, nodes, left []int) (*Grower, error) {
	cv, err := p.Finder.Curve(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	best := &Grower{JobState: j, Group: -1}
	for gi, sizes := range p.Sizes(cv, &s.Cluster) {
		if len(sizes) == 0 || sizes[0].Devices > left[gi] {
			continue
		}
		if j.Grant != nil && nodes[j.Grant.Slots[0].Node] == gi {
			best.Group, best.Sizes = gi, sizes
			break
		}
		if best.Group < 0 || sizes[0].Sec < best.Sizes[0].Sec {
			best.Group, best.Sizes = gi, sizes
		}
	}
	if len(cv.Configs) == 0 {
		best.Candidates, err = p.Finder.AsSubmitted(ctx, s.Cluster, j.Job)
		if err != nil {
			return nil, err
		}
		best.Group = candidate.GroupOfSubmitted(j, s.Cluster.Groups, nodes, left)
	}
	if best.Group < 0 {
		return nil, nil
	}
	left[best.Group] -= best.Devices()
	return best, nil
}

// Sizes returns the sizes on a curve, by group.
func (p *Sizing) Sizes(cv *candidate.Curve, c *spec.Cluster) [][]Size {
	return p.sizes.Of(cv, func() [][]Size {
		out := make([][]Size, len(c.Groups))
		for options := range candidate.BySize(cv.Configs) {
			group := options[0].Group
			out[group] = append(out[group], p.size(options, c.Groups[group].Devices))
		}
		return out
	})
}

// size returns the size of options with equal device counts. With anyDevices its speed is
// that of the packed layout.
func (p *Sizing) size(options []candidate.Config, perNode int) Size {
	o := options[0]
	if p.anyDevices {
		packed := spec.Packed(o.Devices, perNode)
		o = options[max(slices.IndexFunc(options, func(o candidate.Config) bool { return o.Shape == packed }), 0)]
	}
	return Size{o.Devices, 1 / o.Rate, options}
}
