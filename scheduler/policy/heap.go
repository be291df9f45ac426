package policy

// rankHeap is a binary heap: the item that comes before all others is the first.
type rankHeap struct {
	items []*Ranked
	less  func(a, b *Ranked) bool // a comes before b
}

// init makes a heap of items in any order.
func (h *rankHeap) init() {
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *rankHeap) push(r *Ranked) {
	h.items = append(h.items, r)
	for i := len(h.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(h.items[i], h.items[parent]) {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

// pop takes the first item out, of which there must be one.
func (h *rankHeap) pop() *Ranked {
	top, last := h.items[0], len(h.items)-1
	h.items[0], h.items[last] = h.items[last], nil
	h.items = h.items[:last]
	h.down(0)
	return top
}

// down puts the item at i where it belongs among those below.
func (h *rankHeap) down(i int) {
	for {
		first := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.items); c++ {
			if h.less(h.items[c], h.items[first]) {
				first = c
			}
		}
		if first == i {
			return
		}
		h.items[i], h.items[first] = h.items[first], h.items[i]
		i = first
	}
}
