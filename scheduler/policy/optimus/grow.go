package optimus

import (
	"cmp"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
)

// grow gives devices that are left to the job with the highest gain, until no job gains.
func (p *Sizing) grow(growers []*Grower, left []int) {
	h := heap.Heap[*Grower]{Less: byGain}
	for _, g := range growers {
		if g.Keeps {
			continue
		}
		if p.look(g, left[g.Group]); g.gain > 0 {
			h.Items = append(h.Items, g)
		}
	}
	h.Init()
	for len(h.Items) > 0 {
		g := h.Items[0]
		if more := g.Sizes[g.to].Devices - g.Devices(); more <= left[g.Group] {
			left[g.Group] -= more
			g.At = g.to
		}
		if p.look(g, left[g.Group]); g.gain > 0 {
			h.FixFirst()
		} else {
			h.Pop()
		}
	}
}

// look works out what more devices are worth to g, at most left more.
func (p *Sizing) look(g *Grower, left int) {
	g.gain = 0
	for i := g.At + 1; i < len(g.Sizes) && g.Sizes[i].Devices-g.Devices() <= left; i++ {
		more := float64(g.Sizes[i].Devices - g.Devices())
		if gain := g.worth * g.left * (g.Sizes[g.At].Sec - g.Sizes[i].Sec) / (more * g.share); gain > g.gain {
			g.gain, g.to = gain, i
		}
		if p.next {
			return
		}
	}
}

// byGain has the one with the largest gain first, of equal ones the one that arrived
// first.
func byGain(a, b *Grower) bool {
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.Arrival, b.Arrival)) < 0
}
