package policy

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "optimus-oracle",
		Doc:  "devices one by one to whom they save most time, knowing what is left of each job (Peng et al., Optimus, EuroSys 2018); resizes and preempts",
		Options: []Option{
			{Name: "interval", Default: "600", Doc: "seconds after which it decides anew though nothing happened"},
		},
		New: newOptimus,
	})
}

func newOptimus(d Deps) (scheduler.Policy, error) {
	interval, err := d.seconds("interval", 600*time.Second)
	if err != nil {
		return nil, err
	}
	o := &optimus{belief: newBelief(d), known: map[*curve][][]size{}, interval: max(interval, leastWake), anywhere: d.Quirks.ByCount, next: d.Quirks.NextReplica}
	if d.Quirks.EveryRound {
		o.interval = leastWake
	}
	return o, nil
}

// optimus is the allocation and placement of Optimus (sections 4.1 and 4.2) for
// jobs without parameter servers, as in petuum/adaptdl at commit c793c70: with Q
// steps left that take T(n) seconds on n devices, going from n to m is worth
//
//	gain = Q * (T(n) - T(m)) / (m - n)
//
// T is the oracle's belief, Q is JobState.Remaining: where the paper predicts
// convergence, an oracle tells. Jobs of which nothing is believed run as
// submitted, in their turn. Nothing else is known to it.
type optimus struct {
	belief   *belief
	known    map[*curve][][]size // by group
	interval time.Duration
	anywhere bool // any free devices will do, compat.Quirks.ByCount
	next     bool // only the next size counts, compat.Quirks.NextReplica
}

// size is a number of devices a job may run on.
type size struct {
	devices int
	sec     float64  // of a step
	options []option // fastest first
}

// grower is a job that gets devices.
type grower struct {
	*scheduler.JobState
	arrival int
	group   int
	sizes   []size // ascending; none for jobs of which nothing is believed
	at      int    // of sizes, what it is to get
	gain    float64
	to      int   // of sizes, what it would get for gain
	ways    *ways // of jobs without sizes
	grant   *scheduler.Grant
}

func (g *grower) devices() int {
	if len(g.sizes) == 0 {
		return g.Job.Devices
	}
	return g.sizes[g.at].devices
}

func (p *optimus) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{}
	idle := s.Idle()
	left := make([]int, len(s.Cluster.Groups))
	for gi := range left {
		left[gi] = idle.FreeIn(gi)
	}
	var growers []*grower
	for i, j := range s.Jobs() {
		g, err := p.begin(ctx, s, j, idle.Group, left)
		if err != nil {
			return d, err
		}
		if g == nil {
			d.Because(s, j.Job.ID, "the least it can run on is not left at its turn by arrival")
			continue
		}
		g.arrival = i
		growers = append(growers, g)
	}
	p.grow(growers, left)
	p.place(growers, idle, s.Cluster)
	for _, g := range growers {
		if s.Reasons {
			g.explain(s, &d)
		}
		if g.grant == nil {
			continue
		}
		d.Grants = append(d.Grants, g.grant)
		if g.ways != nil && g.ways.warning != "" {
			d.Warnings = append(d.Warnings, g.ways.warning)
		}
	}
	if len(s.Jobs()) > 0 {
		d.Wake = s.Now + p.interval
	}
	return d, nil
}

// explain says what decided about the devices of g.
func (g *grower) explain(s *scheduler.Snapshot, d *scheduler.Decision) {
	switch {
	case g.grant == nil:
		d.Because(s, g.Job.ID, "size %d is meant for it, and finds no room together", g.devices())
	case g.grant.Same(g.Grant):
	case len(g.sizes) == 0:
		d.Because(s, g.Job.ID, "as submitted: nothing is known of its speed")
	default:
		d.Because(s, g.Job.ID, "size %d, each device of which saves it more time than it would others: %.0f s are left", g.grant.Devices(), g.Remaining*g.sizes[g.at].sec)
	}
}

// begin takes the fewest devices j can run on, in the group where it runs or else
// the one where it is fastest on them; nil if they are not left. nodes tells the
// group of each node.
func (p *optimus) begin(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState, nodes, left []int) (*grower, error) {
	cv, err := p.belief.curve(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	best := &grower{JobState: j, group: -1}
	for gi, sizes := range p.sizes(cv, &s.Cluster) {
		if len(sizes) == 0 || sizes[0].devices > left[gi] {
			continue
		}
		if j.Grant != nil && nodes[j.Grant.Slots[0].Node] == gi {
			best.group, best.sizes = gi, sizes
			break
		}
		if best.group < 0 || sizes[0].sec < best.sizes[0].sec {
			best.group, best.sizes = gi, sizes
		}
	}
	if len(cv.options) == 0 {
		best.ways, err = p.belief.asSubmitted(ctx, s.Cluster, j.Job)
		if err != nil {
			return nil, err
		}
		best.group = p.rigid(s, j, nodes, left)
	}
	if best.group < 0 {
		return nil, nil
	}
	left[best.group] -= best.devices()
	return best, nil
}

// rigid returns the group that has the devices j was submitted with, -1 if none
// has: the one it runs in, or else the first.
func (p *optimus) rigid(s *scheduler.Snapshot, j *scheduler.JobState, nodes, left []int) int {
	for gi := range s.Cluster.Groups {
		fits := accepts(j.Job, &s.Cluster.Groups[gi])
		if j.Grant != nil {
			fits = nodes[j.Grant.Slots[0].Node] == gi
		}
		if fits && left[gi] >= j.Job.Devices {
			return gi
		}
	}
	return -1
}

// sizes returns what a curve says of each group.
func (p *optimus) sizes(cv *curve, c *spec.Cluster) [][]size {
	if out, ok := p.known[cv]; ok {
		return out
	}
	out := make([][]size, len(c.Groups))
	for i := 0; i < len(cv.options); {
		group, devices, k := cv.options[i].group, cv.options[i].devices, i
		for k < len(cv.options) && cv.options[k].group == group && cv.options[k].devices == devices {
			k++
		}
		out[group] = append(out[group], p.size(cv.options[i:k], c.Groups[group].Devices))
		i = k
	}
	p.known[cv] = out
	return out
}

// size is what options on equally many devices are. Where any devices will do,
// steps are believed to take as long as packed.
func (p *optimus) size(options []option, perNode int) size {
	o := options[0]
	if p.anywhere {
		packed := spec.Packed(o.devices, perNode)
		o = options[max(slices.IndexFunc(options, func(o option) bool { return o.shape == packed }), 0)]
	}
	return size{o.devices, 1 / o.rate, options}
}

// grow gives what is left to whom it is worth most, until it is worth nothing to
// anybody.
func (p *optimus) grow(growers []*grower, left []int) {
	var h byGain
	for _, g := range growers {
		if p.look(g, left[g.group]); g.gain > 0 {
			h = append(h, g)
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		g := h[0]
		if more := g.sizes[g.to].devices - g.devices(); more <= left[g.group] {
			left[g.group] -= more
			g.at = g.to
		}
		if p.look(g, left[g.group]); g.gain > 0 {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
}

// look works out what more devices are worth to g, at most left more.
func (p *optimus) look(g *grower, left int) {
	g.gain = 0
	for i := g.at + 1; i < len(g.sizes) && g.sizes[i].devices-g.devices() <= left; i++ {
		more := float64(g.sizes[i].devices - g.devices())
		if gain := g.Remaining * (g.sizes[g.at].sec - g.sizes[i].sec) / more; gain > g.gain {
			g.gain, g.to = gain, i
		}
		if p.next {
			return
		}
	}
}

// byGain is a heap of jobs, the one with the largest gain on top, of equal ones
// the one that arrived first.
type byGain []*grower

func (h byGain) Len() int { return len(h) }
func (h byGain) Less(a, b int) bool {
	return cmp.Or(cmp.Compare(h[b].gain, h[a].gain), cmp.Compare(h[a].arrival, h[b].arrival)) < 0
}
func (h byGain) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *byGain) Push(x any)   { *h = append(*h, x.(*grower)) }
func (h *byGain) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// place finds nodes: who keeps its number of devices keeps them, the others
// follow by number, the fewest first (section 4.2).
func (p *optimus) place(growers []*grower, free *scheduler.Inventory, c spec.Cluster) {
	var others []*grower
	for _, g := range growers {
		if g.Grant != nil && g.Grant.Devices() == g.devices() && free.Group[g.Grant.Slots[0].Node] == g.group {
			g.grant = g.Grant
			free.Take(g.grant.Slots)
		} else {
			others = append(others, g)
		}
	}
	slices.SortStableFunc(others, func(a, b *grower) int { return cmp.Compare(a.devices(), b.devices()) })
	for _, g := range others {
		if g.grant = p.find(g, free, c); g.grant != nil {
			free.Take(g.grant.Slots)
		}
	}
}

// find returns a grant for g of devices that are free. Where those of its size do
// not lie as they have to, it gets fewer.
func (p *optimus) find(g *grower, free *scheduler.Inventory, c spec.Cluster) *scheduler.Grant {
	if len(g.sizes) == 0 {
		return p.belief.place(free, c, g.Job, g.ways)
	}
	for i := g.at; i >= 0; i-- {
		sz := &g.sizes[i]
		if g.Grant != nil && g.Grant.Devices() == sz.devices && free.Clone().Take(g.Grant.Slots) {
			return g.Grant
		}
		if grant := p.ofSize(g, sz, free); grant != nil {
			return grant
		}
	}
	return nil
}

func (p *optimus) ofSize(g *grower, sz *size, free *scheduler.Inventory) *scheduler.Grant {
	if !p.anywhere {
		for i := range sz.options {
			if grant := p.belief.placeOption(free, g.Job, &sz.options[i]); grant != nil {
				return grant
			}
		}
		return nil
	}
	shape, ok := p.belief.lay(free, g.group, g.Job, sz.devices)
	if !ok {
		return nil
	}
	o := option{group: g.group, plan: sz.options[0].plan, shape: shape, devices: sz.devices}
	return p.belief.placeOption(free, g.Job, &o)
}
