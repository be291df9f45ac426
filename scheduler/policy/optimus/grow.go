package optimus

import (
	"cmp"

	"github.com/pacer-ml/pacer/scheduler/internal/heap"
)

// grow repeatedly gives devices to the job with the highest gain, until no job gains.
func (p *Sizing) grow(growers []*Grower, left []int) {
	h := heap.Heap[*Grower]{Less: byGain}
	for _, g := range growers {
		if g.Keeps || g.settled {
			continue
		}
		if p.updateGain(g, left[g.Group]); g.gain > 0 {
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
		if p.updateGain(g, left[g.Group]); g.gain > 0 {
			h.FixFirst()
		} else {
			h.Pop()
		}
	}
}

// updateGain sets the highest gain of g with at most left more devices, and its size.
func (p *Sizing) updateGain(g *Grower, left int) {
	g.gain = 0
	for i := g.At + 1; i < len(g.Sizes) && g.Sizes[i].Devices-g.Devices() <= left; i++ {
		more := float64(g.Sizes[i].Devices - g.Devices())
		if gain := g.weight * g.left * (g.Sizes[g.At].Sec - g.Sizes[i].Sec) / (more * g.share); gain > g.gain {
			g.gain, g.to = gain, i
		}
		if p.nextOnly {
			return
		}
	}
}

// byGain orders by descending gain, then arrival.
func byGain(a, b *Grower) bool {
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.Arrival, b.Arrival)) < 0
}
