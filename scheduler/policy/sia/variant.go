package sia

import (
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// Variant replaces rules of Sia. The zero value replaces none.
type Variant struct {
	// FreeMoves lets a starting job move between nodes of one type.
	FreeMoves bool
	// Cost returns the cost of a configuration with normalised goodput v; nil = v^exponent.
	Cost func(v, exponent float64) float64
	// RestartTime returns S, the assumed time of a restart of a job; nil = its
	// start cost.
	RestartTime func(*scheduler.JobState) time.Duration
	// YoungMove sets the restart factor of a job younger than S to 1.
	YoungMove bool
}
