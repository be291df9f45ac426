package policy

// binaryHeap keeps the item that comes before all others first.
type binaryHeap[T any] struct {
	items []T
	less  func(a, b T) bool // a comes before b
}

// init makes a heap of items in any order.
func (h *binaryHeap[T]) init() {
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *binaryHeap[T]) push(r T) {
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
func (h *binaryHeap[T]) pop() T {
	var none T
	top, last := h.items[0], len(h.items)-1
	h.items[0], h.items[last] = h.items[last], none
	h.items = h.items[:last]
	h.down(0)
	return top
}

// again puts the first item, which is another or comes later than it did, where it
// belongs.
func (h *binaryHeap[T]) again() { h.down(0) }

// down puts the item at i where it belongs among those below.
func (h *binaryHeap[T]) down(i int) {
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
