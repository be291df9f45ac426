package lookahead

import "cmp"

// finish is when a task ends.
type finish struct {
	at   float64
	task int
}

func (a finish) compare(b finish) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.task, b.task))
}

// queue is a binary heap, the first to end on top.
type queue []finish

func (q *queue) push(e finish) {
	h := append(*q, e)
	i := len(h) - 1
	for i > 0 && e.compare(h[(i-1)/2]) < 0 {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = e
	*q = h
}

func (q *queue) pop() finish {
	h := *q
	first, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	for i := 0; len(h) > 0; {
		c := 2*i + 1
		if c+1 < len(h) && h[c+1].compare(h[c]) < 0 {
			c++
		}
		if c >= len(h) || e.compare(h[c]) < 0 {
			h[i] = e
			break
		}
		h[i] = h[c]
		i = c
	}
	return first
}
