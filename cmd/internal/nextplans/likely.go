package nextplans

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

const (
	// slowest is the throughput that a likely plan has at least, as a share of that of the best plan on as many
	// devices, and per device of that of the best plan on all devices.
	slowest = 0.5
	// maxLikely bounds the plans that are proposed. The chooser evaluates all of them before each point.
	maxLikely = 128
	// UsualBatch is the global batch per device where none is requested: large enough for pipelines
	// and accumulation.
	UsualBatch = 16
)

// Likely returns the plans of r that a user would run: on 1, 2, 4, ... r.Devices devices, with global batches
// down to a sixteenth of r.GlobalBatch for as many devices, those that fit, are fast, and for which can returns
// true. They are at most maxLikely. Every split of the model comes before the second plan of any. Without any plan it
// returns the planner's reason.
func Likely(ctx context.Context, pl *planner.Planner, r planner.Request, can func(spec.Config) bool) ([]spec.Config, error) {
	var groups [][]spec.Config
	for _, share := range []int{1, 4, 16} {
		full := 0.0 // best throughput per device on all of them
		for _, n := range deviceCounts(r.Devices) {
			at := r
			if at.Devices, at.GlobalBatch = n, r.GlobalBatch*n/r.Devices/share; at.GlobalBatch == 0 {
				continue
			}
			ranking, err := pl.Rank(ctx, at)
			if errors.Is(err, planner.ErrInfeasible) {
				continue
			}
			if err != nil {
				return nil, err
			}
			plans, best := fast(ranking.Choices, full*float64(n), can)
			if n == r.Devices {
				full = best / float64(n)
			}
			groups = append(groups, Alternate(bySplit(plans)))
		}
	}
	all := Alternate(groups)
	if len(all) == 0 {
		if _, err := pl.Best(ctx, r); err != nil {
			return nil, err
		}
		return nil, &query.FieldError{Field: "devices", Value: r.Devices, NoAnswer: true, Err: fmt.Errorf("none of the plans of %s can be run on %d x %s", r.Model.Name, r.Devices, r.Accelerator.Name)}
	}
	return all[:min(len(all), maxLikely)], nil
}

// deviceCounts returns n, and the powers of two below it.
func deviceCounts(n int) []int {
	out := []int{n}
	for i := 1; i < n; i *= 2 {
		out = append(out, i)
	}
	return out
}

// fast returns the configurations of ranked choices that fit and can run, without those slower than a share of
// reference, or of the best one. It returns the throughput of that, too.
func fast(ranked []planner.Choice, reference float64, can func(spec.Config) bool) (out []spec.Config, best float64) {
	for _, c := range ranked {
		if !c.Fits || !can(c.Config) {
			continue
		}
		best = max(best, c.Prediction.Throughput)
		if c.Prediction.Throughput >= slowest*max(best, reference) {
			out = append(out, c.Config)
		}
	}
	return out, best
}

// bySplit groups configurations with plans that differ only in their batches, in the order of the first of each group.
func bySplit(configs []spec.Config) (groups [][]spec.Config) {
	at := map[spec.Plan]int{}
	for _, c := range configs {
		split := c.Plan
		split.MicroBatch, split.AccumSteps = 1, 1
		i, ok := at[split]
		if !ok {
			i = len(groups)
			at[split], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// Alternate returns the first element of every group, then the second, and so on.
func Alternate[T any](groups [][]T) (out []T) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, g := range groups {
			if i < len(g) {
				out, more = append(out, g[i]), true
			}
		}
	}
	return out
}
