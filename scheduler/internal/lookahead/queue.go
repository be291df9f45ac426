package lookahead

import "cmp"

// finish is the end of a task.
type finish struct {
	at   float64
	task int
}

func (a finish) compare(b finish) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.task, b.task))
}

// sooner orders the queue of tasks that hold devices by end, then index.
func sooner(a, b finish) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.task < b.task
}
