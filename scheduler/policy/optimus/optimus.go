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

var OracleInfo = policy.Info{
	Name:    "optimus-oracle",
	Doc:     "devices one by one to the job they save most time, with known remaining steps (Peng et al., Optimus, EuroSys 2018); resizes and preempts",
	Options: oracleOptions,
	Servers: policy.ServesToo,
	New:     newOptimusOracle,
}

var Info = policy.Info{
	Name:    "optimus",
	Doc:     "devices one by one to the job they save most time, with remaining steps estimated from the training loss (Peng et al., Optimus, EuroSys 2018); resizes and preempts",
	Options: options,
	Servers: policy.ServesToo,
	New:     newOptimus,
}

var oracleOptions = []policy.Option{
	{Name: "interval", Default: "600", Unit: "s", Max: 1e9, Doc: "seconds between two decisions when nothing happens"},
}

var options = []policy.Option{
	{Name: "interval", Default: "600", Unit: "s", Max: 1e9, Doc: "seconds between two decisions about the sizes of running jobs"},
	{Name: "young", Default: "0.95", Max: 1, Doc: "weight of a second saved for a job whose remaining steps cannot be estimated yet"},
}

func newOptimusOracle(d policy.Deps) (scheduler.Policy, error) {
	p, err := NewSizing(d)
	switch {
	case err != nil:
		return nil, err
	case d.Servers != nil:
		return newServedOptimus(d, p), nil
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
		return newServedOptimus(d, p), nil
	}
	return p, nil
}

func NewSizing(d policy.Deps) (*Sizing, error) {
	v, rules := d.Values(oracleOptions), policy.VariantOf[Variant](d)
	interval := v.Seconds("interval")
	return &Sizing{Belief: candidate.NewFinder(d), known: map[candidate.CurveKey]*curveSizes{}, interval: max(interval, policy.MinWake),
		anywhere: rules.AnyDevices, next: rules.NextOnly, last: -policy.Never}, v.Err()
}

// Sizing is the allocation and placement of Optimus (sections 4.1 and 4.2) for
// jobs without parameter servers (servedOptimus is that for those with), as in petuum/adaptdl at commit c793c70: with Q
// steps left that take T(n) seconds on n devices, going from n to m is worth
//
//	gain = y * Q * (T(n) - T(m)) / ((m - n) * D)
//
//	T  the oracle's belief, seconds
//	Q  convergence.left; of the oracle variant JobState.Remaining
//	D  the dominant share of a device with what the job needs of the host for it,
//	   in shares of devices: 1 where the job needs nothing of the host
//	y  young, while what is left is a guess; else 1
//
// Jobs of which nothing is believed run as submitted, in their turn.
//
// With convergence the sizes of running jobs are decided on once in an interval, as
// in the paper, and what they save has to be more than a restart costs: estimates
// change all the time. In between devices that are free go to jobs that wait, which
// in the paper wait for the interval.
type Sizing struct {
	Belief      *candidate.Finder
	known       map[candidate.CurveKey]*curveSizes
	interval    time.Duration
	anywhere    bool         // any free devices will do
	next        bool         // only the next size counts
	convergence *convergence // nil = what is left is known
	young       float64
	last        time.Duration // when sizes of running jobs were decided on
}

// Size is a number of devices a job may run on.
type Size struct {
	Devices int
	Sec     float64            // of a step
	options []candidate.Config // fastest first
}

// curveSizes is what a curve says, by group.
type curveSizes struct {
	curve *candidate.Curve
	sizes [][]Size
}

// Grower is a job that gets devices.
type Grower struct {
	*scheduler.JobState
	left    float64 // steps it is taken to have left
	worth   float64 // of a second saved
	share   float64 // dominant share of a device, in shares of devices
	Keeps   bool    // what it holds, whatever its size
	Arrival int
	Group   int
	Sizes   []Size // ascending; none for jobs of which nothing is believed
	At      int    // of sizes, what it is to get
	gain    float64
	to      int            // of sizes, what it would get for gain
	Ways    *candidate.Set // of jobs without sizes
	Granted *scheduler.Grant
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

func (p *Sizing) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{}
	idle := s.Idle()
	left := make([]int, len(s.Cluster.Groups))
	for gi := range left {
		left[gi] = idle.FreeIn(gi)
	}
	if p.convergence != nil {
		p.convergence.look(s)
	}
	settled := p.settle(s, idle.Group, left)
	var growers []*Grower
	for i, j := range s.Jobs() {
		g := &Grower{JobState: j, Keeps: true, Group: -1}
		if !settled || j.Grant == nil {
			var err error
			if g, err = p.begin(ctx, s, j, idle.Group, left); err != nil {
				return d, err
			}
		}
		if g == nil {
			d.Because(s, j.Job.ID, "the least it can run on is not left at its turn by arrival")
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
		if g.Ways != nil && g.Ways.Warning != "" {
			d.Warnings = append(d.Warnings, g.Ways.Warning)
		}
	}
	if len(s.Jobs()) > 0 {
		d.Wake = p.last + p.interval
	}
	return d, nil
}

// settle reports whether running jobs stay as they are this time, and takes what
// they hold from left if so.
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

// estimate works out what is left of g, and what its devices cost the others.
func (p *Sizing) estimate(ctx context.Context, s *scheduler.Snapshot, g *Grower) {
	g.left, g.worth, g.share = g.Remaining, 1, 1
	if g.Keeps {
		return
	}
	if p.convergence != nil {
		young := false
		if g.left, young = p.convergence.left(ctx, g.JobState); young {
			g.worth = p.young
		}
	}
	g.share = DominantShare(&s.Cluster.Groups[g.Group], g.Job.Host)
}

// DominantShare returns the largest share of a group that a device takes with what
// it needs of the host, over the share of devices.
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

// keepSizes lets running jobs keep their sizes where other sizes save less than a restart
// costs, and where no job needs the devices they would give up.
func (p *Sizing) keepSizes(growers []*Grower, left []int) {
	stay := func(when func(g *Grower, more int, held *Size) bool) {
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
				g.At = at
			}
		}
	}
	stay(func(g *Grower, more int, held *Size) bool {
		return more > 0 && g.left*(held.Sec-g.Sizes[g.At].Sec) <= g.StartCost.Seconds()
	})
	stay(func(g *Grower, more int, _ *Size) bool { return more < 0 && -more <= left[g.Group] })
}

// explain says what decided about the devices of g.
func (g *Grower) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	switch {
	case g.Granted == nil:
		d.Because(s, g.Job.ID, "size %d is meant for it, and finds no room together", g.Devices())
	case g.Granted.Same(g.Grant):
	case len(g.Sizes) == 0:
		d.Because(s, g.Job.ID, "as submitted: nothing is known of its speed")
	default:
		d.Because(s, g.Job.ID, "size %d, each device of which saves it more time than it would others: %.0f s are left", g.Granted.Devices(), g.left*g.Sizes[g.At].Sec)
	}
}

// begin takes the fewest devices j can run on, in the group where it runs or else
// the one where it is fastest on them; nil if they are not left. nodes tells the
// group of each node.
func (p *Sizing) begin(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState, nodes, left []int) (*Grower, error) {
	cv, err := p.Belief.Curve(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	best := &Grower{JobState: j, Group: -1}
	for gi, sizes := range p.Sizes(j.Job, cv, &s.Cluster) {
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
		best.Ways, err = p.Belief.AsSubmitted(ctx, s.Cluster, j.Job)
		if err != nil {
			return nil, err
		}
		best.Group = p.Rigid(s, j, nodes, left)
	}
	if best.Group < 0 {
		return nil, nil
	}
	left[best.Group] -= best.Devices()
	return best, nil
}

// Rigid returns the group that has the devices j was submitted with, -1 if none
// has: the one it runs in, or else the first.
func (p *Sizing) Rigid(s *scheduler.Snapshot, j *scheduler.JobState, nodes, left []int) int {
	for gi := range s.Cluster.Groups {
		fits := candidate.Accepts(j.Job, &s.Cluster.Groups[gi])
		if j.Grant != nil {
			fits = nodes[j.Grant.Slots[0].Node] == gi
		}
		if fits && left[gi] >= j.Job.Devices {
			return gi
		}
	}
	return -1
}

// Sizes returns what the curve of j says of each group.
func (p *Sizing) Sizes(j *spec.Job, cv *candidate.Curve, c *spec.Cluster) [][]Size {
	key := candidate.CurveKey{Kind: candidate.KindOf(j), Precision: j.Plan.Precision, Accelerator: j.Accelerator}
	if known := p.known[key]; known != nil && known.curve == cv {
		return known.sizes
	}
	out := make([][]Size, len(c.Groups))
	for i := 0; i < len(cv.Configs); {
		group, devices, k := cv.Configs[i].Group, cv.Configs[i].Devices, i
		for k < len(cv.Configs) && cv.Configs[k].Group == group && cv.Configs[k].Devices == devices {
			k++
		}
		out[group] = append(out[group], p.size(cv.Configs[i:k], c.Groups[group].Devices))
		i = k
	}
	p.known[key] = &curveSizes{cv, out}
	return out
}

// size is what options on equally many devices are. Where any devices will do,
// steps are believed to take as long as packed.
func (p *Sizing) size(options []candidate.Config, perNode int) Size {
	o := options[0]
	if p.anywhere {
		packed := spec.Packed(o.Devices, perNode)
		o = options[max(slices.IndexFunc(options, func(o candidate.Config) bool { return o.Shape == packed }), 0)]
	}
	return Size{o.Devices, 1 / o.Rate, options}
}
