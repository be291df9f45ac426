package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/hybrid"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const adaptiveMost = 24 // rows that an order is followed for

// adaptiveBar is the largest number of rows that adaptive order may need to reach an error, for the
// first time and for good, as a share of those of random order.
type adaptiveBar struct{ errs, most, mostStays float64 }

// TestAdaptiveChoice replays the rows of each model of Rubick's traces in order of largest expected
// gain and in random order, and fits the same family to both. It counts the rows that each needs to
// predict the step times of the others within 15 % and within 10 %.
func TestAdaptiveChoice(t *testing.T) {
	for _, c := range []struct {
		family string
		minFit float64 // rows that a fit takes
		seeds  int     // of as many as are not -short
		bars   []adaptiveBar
		room   float64
	}{
		{"rubick", 2, 20, []adaptiveBar{{0.15, 0.90, 0.75}, {0.10, 0.65, 0.80}}, 0.6},             // reached: 0.85, 0.66; 0.58, 0.70; 0.50
		{"hybrid", 1, hybridSeeds(), []adaptiveBar{{0.15, 0.95, 0.65}, {0.10, 0.70, 0.60}}, 0.80}, // reached with 7 seeds: 0.96, 0.62; 0.61, 0.45; 0.69
	} {
		t.Run(c.family, func(t *testing.T) {
			seeds, slack := c.seeds, 0.0
			if testing.Short() {
				seeds = min(seeds, 7)
			}
			if seeds < 20 {
				slack = 0.05
			}
			keys, random, adaptive := replayBoth(t, c.family, seeds)
			var room share
			for _, bar := range c.bars {
				n := newNeedsTable(bar.errs, random, adaptive)
				t.Log("\n" + n.print(keys))
				bar.check(t, n, keys, slack)
				for k := range keys {
					if r, a := n.medians(k, firstThere); 0.6*r >= c.minFit {
						room.add(r, a)
					}
				}
			}
			t.Logf("where 60 %% can be had, both bars: %s", room)
			if !(room.of() <= c.room) {
				t.Errorf("where 60 %% can be had, adaptive order needs %s of the rows of random order", room)
			}
		})
	}
}

// hybridSeeds is 20, as for the other families, only in soak tests: a seed takes 6 s.
func hybridSeeds() int {
	if os.Getenv("PACER_SOAK") != "" {
		return 20
	}
	return 7
}

// check compares the sums over models with the bar, and each model with random
// order.
func (bar adaptiveBar) check(t *testing.T, n needsTable, keys []spec.Key, slack float64) {
	t.Helper()
	if got := n.sum(firstThere); !(got.of() <= bar.most+slack) {
		t.Errorf("%.0f %% error: adaptive order needs %s of the rows of random order, want at most %g", 100*bar.errs, got, bar.most+slack)
	}
	if got := n.sum(staysThere); !(got.of() <= bar.mostStays+slack) {
		t.Errorf("to stay at %.0f %% error: adaptive order needs %s of the rows of random order, want at most %g", 100*bar.errs, got, bar.mostStays+slack)
	}
	for k, key := range keys {
		if r, a := n.medians(k, firstThere); a > r+1 {
			t.Errorf("%s, %.0f %% error: adaptive order needs %g rows, random order %g", key, 100*bar.errs, a, r)
		}
	}
}

// replayBoth returns the trails of both orders by job type of Rubick's traces,
// then by seed.
func replayBoth(t *testing.T, name string, seeds int) (keys []spec.Key, random, adaptive [][]trail) {
	t.Helper()
	f := withoutRubick(t, name)
	groups := perfmodel.GroupByKey(importAll(t, "rubick"))
	keys = slices.SortedFunc(maps.Keys(groups), perfmodel.CompareKeys)
	for _, key := range keys {
		rows := slices.DeleteFunc(groups[key], func(m spec.Measurement) bool { return !perfmodel.Usable(m) })
		r, a := followBoth(t, f, perfmodel.MergeRepeats(rows), seeds)
		random, adaptive = append(random, r), append(adaptive, a)
	}
	return keys, random, adaptive
}

// withoutRubick returns a family that has seen no row of Rubick's traces: the constants that ship
// with the hybrid family were trained on them, so here it is trained on the published rows.
func withoutRubick(t *testing.T, name string) perfmodel.Family {
	t.Helper()
	if name == "hybrid" {
		field, _, err := datasets.ReadAll(t.Context(), "published", os.DirFS(filepath.Join(spectest.Shared(t), "data/field")))
		if err != nil {
			t.Fatal(err)
		}
		train := []string{"bigscience", "fms_fsdp", "internevo", "korthikanti_2205_05198", "litgpt", "megatron_bridge", "megatron_sc21", "nemo_2407", "torchtitan"}
		rows := slices.DeleteFunc(importAll(t, "published"), func(m spec.Measurement) bool {
			return !slices.Contains(train, strings.TrimPrefix(m.Source, "published/"))
		})
		p, err := hybrid.Train(t.Context(), slices.Concat(rows, field, importAll(t, "sia"), importAll(t, "dl2")))
		if err != nil {
			t.Fatal(err)
		}
		return p.Family()
	}
	return mustFamily(t, name)
}

// followBoth returns the trails of both orders, one per seed.
func followBoth(t *testing.T, f perfmodel.Family, rows []spec.Measurement, seeds int) (random, adaptive []trail) {
	t.Helper()
	most := min(adaptiveMost, len(rows)-1)
	for seed := range seeds {
		r := newReplay(f, rows, uint64(seed))
		random = append(random, r.follow(t, most, r.random))
		adaptive = append(adaptive, r.follow(t, most, r.adaptive(t)))
	}
	return random, adaptive
}

// share is rows of one order as a share of those of another.
type share struct{ random, adaptive float64 }

func (s *share) add(random, adaptive float64) {
	s.random += random
	s.adaptive += adaptive
}

func (s share) of() float64 { return s.adaptive / s.random }

func (s share) String() string {
	return fmt.Sprintf("%.1f of %.1f = %.0f %%", s.adaptive, s.random, 100*s.of())
}

// A reading counts the rows needed to reach an error.
type reading int

const (
	firstThere reading = iota // the first time, over the rows not measured yet
	staysThere                // from there on, over the same
	wholeThere                // the first time, over all rows
	readings
)

var readingNames = [readings]string{"until there", "until it stays there", "over all rows"}

// needs has one count per reading and seed.
type needs [readings][]float64

// newNeeds counts the rows of each trail. An error that is never reached counts as one row more
// than all.
func newNeeds(trails []trail, bar float64) needs {
	there := func(e float64) bool { return e <= bar }
	first := func(errs []float64) float64 {
		if i := slices.IndexFunc(errs, there); i >= 0 {
			return float64(i + 1)
		}
		return float64(len(errs) + 1)
	}
	var n needs
	for _, tr := range trails {
		stays := len(tr.left)
		for stays > 0 && there(tr.left[stays-1]) {
			stays--
		}
		for r, v := range [readings]float64{first(tr.left), float64(stays + 1), first(tr.whole)} {
			n[r] = append(n[r], v)
		}
	}
	return n
}

// needsTable compares both orders at one error, by model.
type needsTable struct {
	bar              float64
	random, adaptive []needs
}

func newNeedsTable(bar float64, random, adaptive [][]trail) needsTable {
	n := needsTable{bar: bar}
	for k := range random {
		n.random = append(n.random, newNeeds(random[k], bar))
		n.adaptive = append(n.adaptive, newNeeds(adaptive[k], bar))
	}
	return n
}

// medians returns those over seeds for the model at k.
func (n needsTable) medians(k int, r reading) (random, adaptive float64) {
	return quantile(n.random[k][r], 0.5), quantile(n.adaptive[k][r], 0.5)
}

// sum returns the share of the medians of all models.
func (n needsTable) sum(r reading) (s share) {
	for k := range n.random {
		s.add(n.medians(k, r))
	}
	return s
}

func (n needsTable) print(keys []spec.Key) string {
	var out strings.Builder
	fmt.Fprintf(&out, "rows until %.0f %% error: random -> adaptive, medians over seeds (90th percentiles)\n%-14s", 100*n.bar, "model")
	for _, name := range readingNames {
		fmt.Fprintf(&out, " | %-26s", name)
	}
	for k, key := range keys {
		fmt.Fprintf(&out, "\n%-14s", key.Model)
		for r := range readings {
			random, adaptive := n.medians(k, r)
			fmt.Fprintf(&out, " | %4.1f (%4.1f) -> %4.1f (%4.1f)", random, quantile(n.random[k][r], 0.9), adaptive, quantile(n.adaptive[k][r], 0.9))
		}
	}
	fmt.Fprintf(&out, "\n%-14s", "sum")
	for r := range readings {
		fmt.Fprintf(&out, " | %-26s", n.sum(r))
	}
	return out.String()
}

// quantile returns the value at share q of v, interpolated.
func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	at := q * float64(len(s)-1)
	i := min(int(at), len(s)-2)
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}
