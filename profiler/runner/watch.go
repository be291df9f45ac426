package runner

import "time"

// Watcher looks at the devices while they are measured.
type Watcher interface {
	// Watch starts to look at devices, by index as in profiler.Machine. pgid
	// returns the process group that is measured, 0 before it runs: whoever
	// else uses the devices disturbs. stop ends the looking and is called once.
	// It is told when the timed steps began and ended; both are zero when there
	// were none.
	Watch(devices []int, pgid func() int) (stop func(began, ended time.Time) Watched)
}

// Watched is what a Watcher saw, of the timed steps as far as it can tell.
type Watched struct {
	Env          map[string]string // added to Measurement.Env
	EnergyJoules float64           // of all devices together from began to ended, 0 = not known
	AvgWatts     float64           // mean power of all devices together, 0 = not known
	Doubt        string            // why the step times are not what the configuration takes, Measurement.Doubt
}

// unwatched is the Watcher of those who have none.
type unwatched struct{}

func (unwatched) Watch([]int, func() int) func(_, _ time.Time) Watched {
	return func(_, _ time.Time) Watched { return Watched{} }
}
