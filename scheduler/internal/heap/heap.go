package heap

// Heap keeps the least of its Items first. Less must be set; it is a strict weak
// order. Items may be filled directly before Init, or read; Items[0] is the least.
type Heap[T any] struct {
	Items []T
	Less  func(a, b T) bool
}

// Init orders Items that were set directly.
func (h *Heap[T]) Init() {
	for i := len(h.Items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Push adds an item.
func (h *Heap[T]) Push(x T) {
	h.Items = append(h.Items, x)
	items, i := h.Items, len(h.Items)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.Less(x, items[parent]) {
			break
		}
		items[i] = items[parent]
		i = parent
	}
	items[i] = x
}

// Pop removes the least item and returns it. It panics if there is none.
func (h *Heap[T]) Pop() T {
	var none T
	last := len(h.Items) - 1
	top := h.Items[0]
	h.Items[0], h.Items[last] = h.Items[last], none
	h.Items = h.Items[:last]
	if last > 0 {
		h.down(0)
	}
	return top
}

// FixFirst restores the order after Items[0] was changed.
func (h *Heap[T]) FixFirst() { h.down(0) }

// down moves the item at i below the lesser ones.
func (h *Heap[T]) down(i int) {
	items := h.Items
	x := items[i]
	for {
		c := 2*i + 1
		if c >= len(items) {
			break
		}
		if c+1 < len(items) && h.Less(items[c+1], items[c]) {
			c++
		}
		if !h.Less(items[c], x) {
			break
		}
		items[i] = items[c]
		i = c
	}
	items[i] = x
}
