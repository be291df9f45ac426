package sia

import (
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// Variant replaces rules of Sia. The zero value replaces none.
type Variant struct {
	// FreeMoves lets a job that pays its start cost move between nodes of one type.
	FreeMoves bool
	// Cost returns the cost of a configuration of relative goodput v; nil = v^exponent.
	Cost func(v, exponent float64) float64
	// RestartTime returns how long a restart of a job is assumed to take; nil = its
	// start cost.
	RestartTime func(*scheduler.JobState) time.Duration
	// YoungMove counts no restarts of a job younger than a restart takes.
	YoungMove bool
}
