package runner

import "time"

// Watcher observes the devices during a measurement.
type Watcher interface {
	// Watch starts to observe devices, by index as in profiler.Machine. pgid returns the process group that is
	// being measured, 0 before it runs: any other process on the devices is interference. stop ends the
	// observation and is called once, with the begin and end of the timed steps, both zero if there are none.
	// The Watched belongs to the caller.
	Watch(devices []int, pgid func() int) (stop func(began, ended time.Time) Watched)
}

// Watched holds the observations of a Watcher, of the timed steps if possible.
type Watched struct {
	Env          map[string]string // added to Measurement.Env
	EnergyJoules float64           // of all devices together from began to ended, 0 = unknown
	AvgWatts     float64           // mean power of all devices together, 0 = unknown
	Doubt        string            // for Measurement.Doubt: why the step times may not be those of the configuration
}

// noWatcher is the default Watcher.
type noWatcher struct{}

func (noWatcher) Watch([]int, func() int) func(_, _ time.Time) Watched {
	return func(_, _ time.Time) Watched { return Watched{} }
}
