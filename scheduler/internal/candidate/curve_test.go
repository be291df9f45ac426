package candidate

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// revised is a Learner that only counts revisions.
type revised struct {
	scheduler.Learner
	n int
}

func (r *revised) Revision(spec.Key) int { return r.n }

// TestPerCurve checks that a value is derived once per revision of a curve, and that a new
// revision replaces the old value.
func TestPerCurve(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 2, Accelerator: spec.Accelerator{Name: "x"}}}}
	learner := &revised{}
	b := NewFinder(policy.Deps{Oracle: planner.New(hostBound{}, planner.Options{})})
	b.Learns = learner
	var derived []string
	var cache PerCurve[string]
	for _, query := range []struct {
		model    string
		revision int
	}{{"m", 0}, {"n", 0}, {"m", 0}, {"m", 1}, {"n", 1}, {"m", 1}} {
		learner.n = query.revision
		j := &spec.Job{Model: spec.Model{Name: query.model, Kind: spec.Decoder, Layers: 2, Hidden: 64, Heads: 4, SeqLen: 8, Vocab: 100}, GlobalBatch: 8, Devices: 2}
		cv, err := b.Curve(t.Context(), c, j)
		if err != nil {
			t.Fatal(err)
		}
		got := cache.Of(cv, func() string { derived = append(derived, query.model); return query.model })
		if got != query.model {
			t.Errorf("%+v: value of %s", query, got)
		}
	}
	if want := []string{"m", "n", "m", "n"}; !slices.Equal(derived, want) || len(cache.entries) != 2 {
		t.Errorf("derived %v, want %v; %d entries, want 2", derived, want, len(cache.entries))
	}
}

// TestUndominated checks that a candidate is left out only for one that is as fast and fits wherever it does.
func TestUndominated(t *testing.T) {
	of := func(group int, rate float64, counts ...int) Config {
		shape := spec.NewShape(counts...)
		return Config{Group: group, Shape: shape, Devices: shape.Total(), Rate: rate}
	}
	hungry := of(0, 9, 4)
	hungry.Host.MilliCPUs = 8000
	got := Undominated([]Config{of(0, 1, 1), of(0, 3, 2), of(0, 2, 3), of(0, 3, 1, 1), of(0, 3, 1, 1, 1), of(1, 2, 3), of(0, 4, 4), hungry, of(0, 4, 3, 2)})
	want := []Config{of(0, 1, 1), of(0, 3, 2), of(0, 3, 1, 1), of(1, 2, 3), of(0, 4, 4), hungry, of(0, 4, 3, 2)}
	if !slices.EqualFunc(got, want, func(a, b Config) bool {
		return a.Group == b.Group && a.Shape == b.Shape && a.Rate == b.Rate && a.Host == b.Host
	}) {
		t.Errorf("undominated %+v, want %+v", got, want)
	}
}
