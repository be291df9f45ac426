package sim

import (
	"cmp"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// roundFrom returns the first beginning of a round at t or later; without rounds
// t itself.
func (c *Config) roundFrom(t time.Duration) time.Duration {
	if c.Round == 0 || t >= never {
		return t
	}
	if over := t % c.Round; over > 0 {
		return t - over + c.Round
	}
	return t
}

// noticed returns when what happens at t is seen; counts is when it counts as
// having happened.
func (c *Config) noticed(t, counts time.Duration) time.Duration {
	if c.Quirks.Ticks {
		return c.roundFrom(t)
	}
	return counts
}

// seen returns when the arrival of j is seen.
func (c *Config) seen(j *spec.Job) time.Duration { return c.noticed(j.Submit, j.Submit) }

// compare is the order in which jobs enter: by submit time, then ID.
func (c *Config) compare(a, b *spec.Job) int {
	if c.Quirks.NumbersInOrder {
		return cmp.Or(cmp.Compare(c.seen(a), c.seen(b)), byNumber(a.ID, b.ID))
	}
	return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID))
}

// byNumber orders IDs that are or end in whole numbers by these, before all
// others.
func byNumber(a, b spec.JobID) int {
	x, okA := digits(a)
	y, okB := digits(b)
	if !okA || !okB {
		return cmp.Or(cmp.Compare(btoi(!okA), btoi(!okB)), cmp.Compare(a, b))
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
}

// digits returns the digits that id ends in without leading zeros, and whether it
// has any and is no more than that or has a hyphen before them.
func digits(id spec.JobID) (spec.JobID, bool) {
	id = id[strings.LastIndexByte(string(id), '-')+1:]
	for i := range len(id) {
		if id[i] < '0' || id[i] > '9' {
			return "", false
		}
	}
	for len(id) > 1 && id[0] == '0' {
		id = id[1:]
	}
	return id, id != ""
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
