package live

import (
	"maps"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Stats sums the work of a controller.
type Stats struct {
	Ticks, FailedObservations int
	Decisions                 int // calls of the policy
	Made, Refused, Failed     int // decisions: made, refused by scheduler.Check, errors of the policy
	Writes, FailedWrites      int
	Starts, Stops, Lost       int
	Refits                    int           // changes of the estimates, see Options.Refitted
	Observe, Decide, Write    time.Duration // of the last Tick; 0 = it did not
}

// Report is what a Tick leaves behind.
type Report struct {
	Stats
	Observed bool          // the cluster could be observed
	Jobs     map[Phase]int // of pacer, by their phase when observed last; those left alone included
	// PartlyDone is the number of jobs with processes that have ended well a minute ago or earlier, and others that run on.
	PartlyDone int
	OffTarget  int // jobs that do not run as decided, or may not: those left alone do not count
	// Faulty are the objects with a fault, such as "job 17", "node n3", "planner", "policy" if there is no decision, or "cluster"
	// if it could not be observed.
	Faulty []string
	// Pace is, of the jobs that have reported steps for ten times Options.Resync of their present run, their speed over that
	// predicted.
	Pace map[spec.JobID]float64
}

// Stats returns the sums so far. It may not be called during Tick.
func (c *Controller) Stats() Stats { return c.stats }

// report calls OnTick.
func (c *Controller) report(observed bool) {
	r := Report{Stats: c.stats, Observed: observed, Jobs: map[Phase]int{}, Pace: map[spec.JobID]float64{}}
	for id, j := range c.jobs {
		r.Jobs[j.observed.Phase]++
		if j.told {
			r.PartlyDone++
		}
		if j.managed && !j.onTarget() {
			r.OffTarget++
		}
		if rate := j.paced.rate(10 * c.Resync); rate > 0 && j.rate > 0 && j.observed.Spec.Steps > 0 && j.onTarget() {
			r.Pace[id] = rate / j.rate
		}
	}
	if c.refusal != "" {
		c.faulted["policy"] = true
	}
	if !observed {
		c.faulted["cluster"] = true
	}
	r.Faulty = slices.Sorted(maps.Keys(c.faulted))
	c.OnTick(r)
}
