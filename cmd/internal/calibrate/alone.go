package calibrate

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// allRanks returns c, or if it is one rank alone, the plan of all ranks.
func allRanks(c spec.Config) spec.Config {
	c.AloneStage = 0
	return c
}

// wholePlans returns the plans of points, each once, in their order.
func wholePlans(points []profiler.Point) (out []spec.Config) {
	seen := map[profiler.Identity]bool{}
	for _, p := range points {
		c := allRanks(p.Config)
		if id := identity(c); !seen[id] {
			seen[id], out = true, append(out, c)
		}
	}
	return out
}

// aloneCount is the number of points that are one rank alone.
func aloneCount(points []profiler.Point) (n int) {
	for _, p := range points {
		if p.Config.Alone() {
			n++
		}
	}
	return n
}

// largestPlan returns the most devices of a plan of points.
func largestPlan(points []profiler.Point) (n int) {
	for _, p := range points {
		n = max(n, p.Config.Plan.Devices())
	}
	return n
}

// wantWholePlans makes the whole plans those that the chosen points should predict best.
func (s *session) wantWholePlans() {
	for _, c := range wholePlans(s.Points) {
		s.Profiler.For = append(s.Profiler.For, profiler.Wanted{Plan: c.Plan, Shape: c.Shape})
	}
}

// onlyRanks warns that plans held out are single ranks.
func (r *Report) onlyRanks() []string {
	ranks := 0
	for _, p := range r.Plans {
		if p.AloneStage > 0 {
			ranks++
		}
	}
	if ranks == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of the %d scored are one rank without the others: these errors are of its compute; no traffic was measured, and the intervals of whole plans say how uncertain that leaves them",
		ranks, len(r.Plans))}
}
