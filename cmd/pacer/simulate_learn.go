package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler/online"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// learning is a belief that is fitted to a few stored rows, and anew while jobs run.
type learning struct {
	family perfmodel.Family
	points int           // configurations of each model to begin with, at most
	noise  float64       // of what is seen, see sim.Sightings
	after  time.Duration // the same
	every  time.Duration // see online.Options
	rows   []spec.Measurement
}

// parseLearning reads FAMILY[:key=value...].
func parseLearning(text string) (*learning, error) {
	parts := strings.Split(text, ":")
	fam, err := family.Lookup(parts[0])
	if err != nil {
		return nil, usagef("simulate: online:%s: %w", text, err)
	}
	if fam.Fit == nil {
		return nil, usagef("simulate: online:%s: family %s is not fitted, so it cannot learn: use fitted:%s", text, fam.Name, fam.Name)
	}
	l := &learning{family: fam, points: 8, after: 10 * time.Second}
	given := once{}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		if given.again(key) {
			return nil, usagef("simulate: online:%s: %s is given twice", text, key)
		}
		if err := l.set(key, value); err != nil {
			return nil, usagef("simulate: online:%s: %w", text, err)
		}
	}
	return l, nil
}

func (l *learning) set(key, value string) error {
	number, err := strconv.ParseFloat(value, 64)
	seconds := time.Duration(number * float64(time.Second))
	most := 1e9
	switch key {
	case "points":
		l.points = int(number)
		if err == nil && number != math.Trunc(number) {
			err = errors.New("not a whole number")
		}
	case "noise":
		l.noise, most = number, 1
	case "after":
		l.after = seconds
	case "every":
		l.every = seconds
	default:
		return fmt.Errorf("no option %q, there are: points, noise, after, every", key)
	}
	if err != nil || !(number >= 0 && number <= most) {
		return fmt.Errorf("%s=%s is not a number in [0, %g], or not whole where it has to be", key, value, most)
	}
	return nil
}

// profile takes the rows to begin with from the store: of each model of the jobs,
// on each accelerator of the cluster, those that pacer fit would take. It warns of
// models without enough.
func (l *learning) profile(c *cli.Context, s *study) error {
	names := map[string]bool{}
	for i := range s.jobs {
		names[s.jobs[i].Model.Name] = true
	}
	stored, err := storedRows(c, store.Filter{})
	if err != nil {
		return err
	}
	byKey := perfmodel.GroupByKey(stored)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for i := range s.cluster.Groups {
			key := spec.Key{Model: name, Accelerator: s.cluster.Groups[i].Accelerator.Name}
			if slices.ContainsFunc(s.cluster.Groups[:i], func(g spec.NodeGroup) bool { return g.Accelerator.Name == key.Accelerator }) {
				continue
			}
			fit, _, err := perfmodel.Split(l.family, byKey[key], l.points)
			if err != nil && !errors.Is(err, perfmodel.ErrTooFewPoints) {
				return err
			}
			if len(fit) == 0 {
				fmt.Fprintf(c.App.ErrWriter, "warning: %s: nothing is profiled: such jobs run as submitted until enough was seen of them\n", key)
			}
			l.rows = append(l.rows, fit...)
		}
	}
	return nil
}

// oracle makes the belief of one run, to which what is seen of the jobs is told.
func (l *learning) oracle(ctx context.Context, s *study) (*online.Oracle, *sim.Sightings, error) {
	o, err := online.New(ctx, online.Options{Family: l.family, Rows: l.rows, Every: l.every, Planner: planner.Options{Space: s.truth.space()}})
	if err != nil {
		return nil, nil, err
	}
	return o, &sim.Sightings{Learner: o, After: l.after, Sigma: l.noise, Seed: s.seed}, nil
}
