package sia

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	compat "github.com/pacer-ml/pacer/scheduler/compat/sia"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// Dynamic programming and prices both find the minimal cost, that of an exhaustive search.
func TestChooseCells(t *testing.T) {
	const wait = 1.1
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 3).Draw(t, "room")
		var rows []*Row
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			r := &Row{}
			for range rapid.IntRange(0, 4).Draw(t, "cells") {
				r.Cells = append(r.Cells, Cell{
					Group:   rapid.IntRange(0, len(room)-1).Draw(t, "group"),
					Devices: rapid.IntRange(1, 4).Draw(t, "devices"),
				})
				r.Costs = append(r.Costs, rapid.Float64Range(0, 1.5).Draw(t, "cost"))
			}
			rows = append(rows, r)
		}
		best := least(rows, wait, room)
		exact := chooseExactly(rows, wait, room)
		priced, err := chooseByPrices(t.Context(), rows, wait, room, nil)
		if err != nil || !priced.Proven {
			t.Fatalf("by prices: proven %v, error %v", priced.Proven, err)
		}
		prices := rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 4).Draw(t, "prices") // of other groups, too
		from, err := chooseByPrices(t.Context(), rows, wait, room, prices)
		if err != nil || !from.Proven {
			t.Fatalf("by prices from %v: proven %v, error %v", prices, from.Proven, err)
		}
		for name, picks := range map[string][]int{"exactly": exact, "by prices": priced.Picks, "by prices from others": from.Picks} {
			left := append([]int(nil), room...)
			cost := 0.0
			for i, c := range picks {
				if c < 0 {
					cost += wait
					continue
				}
				cost += rows[i].Costs[c]
				if left[rows[i].Cells[c].Group] -= rows[i].Cells[c].Devices; left[rows[i].Cells[c].Group] < 0 {
					t.Fatalf("%s: %v takes more than there is", name, picks)
				}
			}
			within := 1e-8
			if name != "exactly" {
				within = 1e-4*wait*float64(len(rows)) + within
			}
			if math.Abs(cost-best) > within {
				t.Errorf("%s: %v costs %g, the best %g", name, picks, cost, best)
			}
		}
	})
}

// least tries all combinations.
func least(rows []*Row, wait float64, room []int) float64 {
	if len(rows) == 0 {
		return 0
	}
	r, best := rows[0], wait+least(rows[1:], wait, room)
	for c, cell := range r.Cells {
		if cell.Devices <= room[cell.Group] {
			room[cell.Group] -= cell.Devices
			best = min(best, r.Costs[c]+least(rows[1:], wait, room))
			room[cell.Group] += cell.Devices
		}
	}
	return best
}

// Costs with rounded-costs are those of Sia's artifact: to 1/100, 3000 at most.
func TestSiaCost(t *testing.T) {
	exact, rounded := &sia{exponent: -0.5}, &sia{exponent: -0.5, rules: Variant{Cost: compat.RoundedCost}}
	for v, want := range map[float64]float64{1: 1, 2: 0.71, 9.7: 0.32, 1e-9: 3000} {
		if got := rounded.cost(v); got != want {
			t.Errorf("%g costs %g, want %g", v, got, want)
		}
		if got := exact.cost(v); math.Abs(got-1/math.Sqrt(v)) > 1e-9*got {
			t.Errorf("%g costs %g unrounded", v, got)
		}
	}
}

// A job of 100 s that was restarted once loses 60 s to one more: (100 - 60) / 160.
// With assumed-starts yolov3 loses 45; with young-move a job younger than that loses
// none.
func TestRestartFactor(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		rules    Variant
		model    string
		age      time.Duration
		restarts int
		want     float64
	}{
		{Variant{}, "yolov3", 100 * s, 1, 40.0 / 160},
		{Variant{}, "yolov3", 100 * s, 2, 0},
		{Variant{}, "yolov3", 0, 0, 1},
		{Variant{}, "yolov3", 30 * s, 0, 30.0 / 90},
		{Variant{RestartTime: compat.AssumedStart}, "yolov3", 100 * s, 1, 55.0 / 145},
		{Variant{RestartTime: compat.AssumedStart}, "other", 100 * s, 1, 70.0 / 130},
		{Variant{YoungMove: true}, "yolov3", 59 * s, 0, 1},
		{Variant{YoungMove: true}, "yolov3", 60 * s, 0, 0.5},
	} {
		p := &sia{rules: c.rules}
		j := &scheduler.JobState{Job: &spec.Job{Model: spec.Model{Name: c.model}, Submit: s}, Restarts: c.restarts, StartCost: 60 * s}
		if got := p.restartFactor(s+c.age, j); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v, %s, %v, %d restarts: %g, want %g", c.rules, c.model, c.age, c.restarts, got, c.want)
		}
	}
}

// halves is an Elastic that lets jobs make half a step/s on each device, on one
// type only.
type halves struct {
	scheduler.Oracle
	only string
}

func (h halves) Goodput(_ context.Context, _ *scheduler.JobState, g *spec.NodeGroup, shape spec.Shape) (spec.Plan, float64, error) {
	if g.Accelerator.Name != h.only {
		return spec.Plan{}, 0, perfmodel.ErrNotCovered
	}
	n := shape.Total()
	return spec.Plan{DP: n}.Normal(), float64(n) / 2, nil
}

// Jobs that choose their batch get powers of two of devices within a node, or whole nodes, and
// grants with Elastic.
func TestSiaElastic(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{
		{Count: 1, Devices: 2, Accelerator: spec.Accelerator{Name: "x"}}, {Count: 3, Devices: 4, Accelerator: spec.Accelerator{Name: "y"}},
	}}
	made, err := newSia(policy.Deps{Oracle: halves{only: "y"}})
	if err != nil {
		t.Fatal(err)
	}
	p := made.(*sia)
	j := &scheduler.JobState{Job: &spec.Job{ID: "j", Devices: 1}, Remaining: 1}
	snap := scheduler.NewSnapshot(0, c, []*scheduler.JobState{j})
	r, err := p.row(t.Context(), snap, j)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, cell := range r.Cells {
		sizes = append(sizes, cell.Devices)
	}
	if !slices.Equal(sizes, []int{1, 2, 4, 8, 12}) || r.Costs[4] != math.Pow(12, -0.5) {
		t.Errorf("sizes %v at %v", sizes, r.Costs)
	}
	d, err := p.Decide(t.Context(), snap)
	if err != nil || len(d.Grants) != 1 || d.Grants[0].Devices() != 12 || !d.Grants[0].Elastic {
		t.Errorf("%+v, error %v, want 12 devices and its own batch", d.Grants, err)
	}

	w, err := p.Weigh(t.Context(), snap, map[spec.JobID]Given{"j": {Group: 1, Devices: 4}})
	if err != nil || w.Own != math.Pow(12, -0.5) || w.Given != 0.5 || w.Impossible != "" || len(w.Decision.Grants) != 1 || w.Decision.Grants[0].Devices() != 4 {
		t.Errorf("4 devices are weighed %+v, error %v", w, err)
	}
	if w, err := p.Weigh(t.Context(), snap, nil); err != nil || w.Given != p.wait || len(w.Decision.Grants) != 0 {
		t.Errorf("nothing is weighed %+v, error %v", w, err)
	}
	if w, err := p.Weigh(t.Context(), snap, map[spec.JobID]Given{"j": {Group: 0, Devices: 2}}); err != nil || w.Impossible != "job j: 2 x is none of its configurations" || len(w.Decision.Grants) != 1 {
		t.Errorf("what it cannot have is weighed %+v, error %v", w, err)
	}
}

// TestSiaPrices checks that choices by prices begin at those of the last decision, of an earlier time if it decides twice.
func TestSiaPrices(t *testing.T) {
	var c spec.Cluster // three groups have too many states for an exact choice
	for range 3 {
		c.Groups = append(c.Groups, spec.NodeGroup{Count: 54, Devices: 4, Accelerator: spec.Accelerator{Name: "y"}})
	}
	made, err := newSia(policy.Deps{Oracle: halves{only: "y"}})
	if err != nil {
		t.Fatal(err)
	}
	p := made.(*sia)
	var jobs []*scheduler.JobState
	decide := func(p *sia, at time.Duration, more int) (points int) {
		for range more {
			jobs = append(jobs, &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(fmt.Sprint(len(jobs))), Devices: 1}, Remaining: 1})
		}
		if _, err := p.Decide(t.Context(), scheduler.NewSnapshot(at, c, jobs)); err != nil {
			t.Fatal(err)
		}
		return p.last.Points
	}
	decide(p, 1*time.Second, 300)
	next := decide(p, 2*time.Second, 100)
	again := decide(p, 2*time.Second, 0)
	cold := decide(&sia{Space: p.Space, exponent: p.exponent, wait: p.wait}, 2*time.Second, 0)
	if next >= cold || again != next {
		t.Errorf("%d points from the last prices, %d again, %d without prices", next, again, cold)
	}
}

// A job that is starting keeps its configuration. With free-moves its nodes may change.
func TestSiaStuck(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 2, Accelerator: spec.Accelerator{Name: "y"}}}}
	for _, q := range []Variant{{}, {FreeMoves: true}} {
		made, err := newSia(policy.Deps{Oracle: halves{only: "y"}, Variants: policy.Variants{&q}})
		if err != nil {
			t.Fatal(err)
		}
		var jobs []*scheduler.JobState
		for node, id := range []spec.JobID{"a", "b"} {
			g := &scheduler.Grant{Job: id, Plan: spec.Plan{DP: 1}.Normal(), Shape: spec.NewShape(1), Slots: []scheduler.Slot{{Node: node, Devices: 1}}, Elastic: true}
			jobs = append(jobs, &scheduler.JobState{Job: &spec.Job{ID: id}, Grant: g, Ready: time.Minute})
		}
		jobs = append(jobs, &scheduler.JobState{Job: &spec.Job{ID: "c"}, Remaining: 1})
		snap := scheduler.NewSnapshot(time.Second, c, jobs)
		d, err := made.Decide(t.Context(), snap)
		if err != nil {
			t.Fatal(err)
		}
		got := map[spec.JobID]int{}
		for _, g := range d.Grants {
			got[g.Job] = g.Devices()
		}
		if want := map[bool]int{false: 1, true: 2}[q.FreeMoves]; got["a"] != 1 || got["b"] != 1 || got["c"] != want {
			t.Errorf("%+v: %v, want 1, 1 and %d", q, got, want)
		}
		w, err := made.(Weigher).Weigh(t.Context(), snap, map[spec.JobID]Given{"a": {0, 1}, "b": {0, 2}})
		if q.FreeMoves && (err != nil || w.Impossible != "job b: is starting and keeps its devices") {
			t.Errorf("%+v, error %v", w, err)
		}
	}
}

// Option wait must be above 1, the cost of the lowest goodput: else a single job would wait for
// ever.
func TestSiaWait(t *testing.T) {
	for wait, ok := range map[string]bool{"1": false, "NaN": false, "1.001": true} {
		if _, err := newSia(policy.Deps{Options: map[string]string{"wait": wait}}); (err == nil) != ok {
			t.Errorf("wait=%s: error %v", wait, err)
		}
	}
}

// A job gets a number of devices that is none of its configurations, with an error, unless no
// group has as many.
func TestPickOf(t *testing.T) {
	const none = "is none of its configurations"
	for devices, want := range map[int]struct {
		pick, cells int
	}{1: {0, 1}, 3: {1, 2}, 9: {-1, 1}, 1e15: {-1, 1}} {
		r := &Row{JobState: &scheduler.JobState{Job: &spec.Job{ID: "a"}}, Cells: []Cell{{Devices: 1}}, Costs: []float64{1}}
		pick, err := r.pickOf(map[spec.JobID]Given{"a": {Devices: devices}}, schedulertest.Nodes(2, 4))
		if pick != want.pick || len(r.Cells) != want.cells || (err == nil) != (devices == 1) || err != nil && !strings.Contains(err.Error(), none) {
			t.Errorf("%d devices: pick %d of %d, error %v, want %+v", devices, pick, len(r.Cells), err, want)
		}
	}
}
