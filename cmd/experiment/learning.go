package experiment

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

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler/online"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// learning is a belief fitted to a few stored rows, and again while jobs run.
type learning struct {
	family perfmodel.Family
	points int           // most configurations of each model to begin with
	noise  float64       // deviation of ln(step time) of what is observed
	after  time.Duration // of training, before a job's step time is observed
	every  time.Duration // between fits, see online.Options
	rows   []spec.Measurement
}

// parseLearning reads FAMILY[:key=value...].
func parseLearning(text string) (*learning, error) {
	value := "online:" + text
	parts := strings.Split(text, ":")
	fam, err := family.Lookup(parts[0])
	if err != nil {
		return nil, invalidBecause("belief", value, fmt.Errorf("%s: %w", value, err))
	}
	if fam.Fit == nil {
		return nil, invalid("belief", value, ": family %s is not fitted, so it cannot learn: use fitted:%s", fam.Name, fam.Name)
	}
	l := &learning{family: fam, points: 8, after: 10 * time.Second}
	given := givenKeys{}
	for _, p := range parts[1:] {
		key, number, _ := strings.Cut(p, "=")
		if given.add(key) {
			return nil, invalid("belief", value, ": %s is given twice", key)
		}
		if err := l.set(key, number); err != nil {
			return nil, invalid("belief", value, ": %v", err)
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

// profile takes the first rows from the store: those that pacer fit would take, of each
// model of the jobs on each accelerator of the cluster. It warns of models without
// enough of them.
func (l *learning) profile(ctx context.Context, s *Simulation) error {
	names := map[string]bool{}
	for i := range s.Jobs {
		names[s.Jobs[i].Model.Name] = true
	}
	stored, err := s.options.Data.rows(ctx, store.Filter{})
	if err != nil {
		return err
	}
	byKey := map[spec.Key][]spec.Measurement{}
	for _, m := range stored {
		k := query.CanonicalKey(m.Config.Key())
		byKey[k] = append(byKey[k], m)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for i := range s.Cluster.Groups {
			key := spec.Key{Model: name, Accelerator: s.Cluster.Groups[i].Accelerator.Name}
			if slices.ContainsFunc(s.Cluster.Groups[:i], func(g spec.NodeGroup) bool { return g.Accelerator.Name == key.Accelerator }) {
				continue
			}
			rows := slices.Clone(byKey[query.CanonicalKey(key)])
			for i := range rows {
				rows[i].Config.Model.Name = name
			}
			fit, _, err := perfmodel.Split(l.family, rows, l.points)
			if err != nil && !errors.Is(err, perfmodel.ErrTooFewPoints) {
				return err
			}
			if len(fit) == 0 {
				warn(&s.options, "warning", "", []string{fmt.Sprintf("%s: nothing is profiled: such jobs run as submitted until enough was seen of them", key)})
			}
			l.rows = append(l.rows, fit...)
		}
	}
	return nil
}

// oracle returns the belief of one run, and what gives it the observed step times.
func (l *learning) oracle(ctx context.Context, s *Simulation) (*online.Oracle, *sim.Observations, error) {
	o, err := online.New(ctx, online.Options{Family: l.family, Rows: l.rows, Every: l.every, Planner: planner.Options{Space: s.truth.space()}})
	if err != nil {
		return nil, nil, err
	}
	return o, &sim.Observations{Learner: o, After: l.after, Sigma: l.noise, Seed: s.Seed}, nil
}
