package nearest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spacefill"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestFind compares with all distances sorted: the nearest rows are found, one of each configuration and source.
func TestFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) spec.Config {
			degree := rapid.SampledFrom([]int{1, 2, 4, 8})
			p := spec.Plan{DP: degree.Draw(t, what+" dp"), TP: degree.Draw(t, what+" tp"), MicroBatch: degree.Draw(t, what+" mb")}
			return spec.Config{Model: spec.Model{Name: "m"}, Plan: p.Normal(), Shape: spec.Packed(p.DP*p.TP, 8)}
		}
		asked, top := draw("asked"), rapid.IntRange(1, 5).Draw(t, "top")
		var rows []spec.Measurement
		for i := range rapid.IntRange(0, 30).Draw(t, "rows") {
			outcome := rapid.SampledFrom([]spec.Outcome{spec.OK, spec.OOM, spec.Failed}).Draw(t, "outcome")
			rows = append(rows, spec.Measurement{Config: draw(fmt.Sprint(i)), Outcome: outcome, Source: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "source")})
		}
		got, compared, err := Find(func(yield func(spec.Measurement, error) bool) {
			for _, m := range rows {
				if !yield(m, nil) {
					return
				}
			}
		}, &asked, top)
		distance, count := spacefill.DistanceFrom(&asked), 0
		var want []float64
		seen := map[string]bool{}
		for i := range rows {
			m := &rows[i]
			if m.Outcome == spec.Failed {
				continue
			}
			count++
			if key := fmt.Sprintf("%s %+v", m.Source, m.Config); !seen[key] {
				seen[key] = true
				want = append(want, distance(&m.Config))
			}
		}
		slices.SortFunc(want, cmp.Compare[float64])
		want = want[:min(len(want), top)]
		var have []float64
		for i := range got {
			have = append(have, got[i].distance)
		}
		if err != nil || compared != count || !slices.Equal(have, want) {
			t.Fatalf("distances %v of %d compared, %v; want %v of %d", have, compared, err, want, count)
		}
	})
}

func TestFindFails(t *testing.T) {
	broken := errors.New("broken")
	_, _, err := Find(func(yield func(spec.Measurement, error) bool) { yield(spec.Measurement{}, broken) }, &spec.Config{}, 3)
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the rows", err)
	}
}
