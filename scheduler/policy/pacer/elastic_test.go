package pacer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
)

// elasticRowOf is a job with sec/2 remaining steps and a goodput of 0.5 steps/s per device.
func elasticRowOf(id string, sec float64, grant *scheduler.Grant) *sia.Row {
	j := &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(id)}, Remaining: sec / 2, StartCost: 90 * time.Second, Grant: grant}
	r := &sia.Row{JobState: j}
	for _, n := range []int{1, 2, 4, 12} {
		o := candidate.Config{Devices: n, Shape: spec.Packed(n, 4), Plan: spec.Plan{DP: n}.Normal(), Rate: float64(n) / 2}
		r.Cells = append(r.Cells, sia.Cell{Devices: n, Goodput: o.Rate, Options: []candidate.Config{o}, Elastic: true})
	}
	return r
}

func twoNodes() spec.Cluster {
	return spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4, Accelerator: spec.Accelerator{Name: "x"}}}}
}

func grantOn(id string, node, devices int) *scheduler.Grant {
	return &scheduler.Grant{Job: spec.JobID(id), Plan: spec.Plan{DP: devices}.Normal(), Shape: spec.Packed(devices, 4),
		Slots: []scheduler.Slot{{Node: node, Devices: devices}}, Elastic: true}
}

// The job with the shortest remaining time ranks highest; a job without goodput ranks above
// all. The value of other configurations than the present one is reduced by 90 s of restart
// out of the mean time between restarts, or out of the time until the job ends. All values
// of a job with devices contain what it would lose later if it were stopped.
func TestElasticWeigh(t *testing.T) {
	long, short := elasticRowOf("long", 40000, grantOn("long", 0, 2)), elasticRowOf("short", 440, grantOn("short", 1, 2))
	long.Restarts = 1
	fresh := elasticRowOf("fresh", 1e6, nil)
	for i := range fresh.Cells {
		fresh.Cells[i].Goodput = 0
	}
	rows := []*sia.Row{fresh, short, long}
	s := scheduler.NewSnapshot(1800*time.Second, twoNodes(), []*scheduler.JobState{long.JobState, short.JobState, fresh.JobState})
	(&elasticPacer{}).setCosts(s, rows)
	value := func(rank, speed float64) float64 { return math.Pow(rank, 0.8) * math.Pow(speed, 0.8) }
	keptLong, keptShort := value(1, 2/12.*0.1), value(2, 2/12.*90/310)
	for _, c := range []struct {
		row  *sia.Row
		want []float64
	}{
		{long, []float64{value(1, 0.9/12) + keptLong, value(1, 2/12.) + keptLong, value(1, 4/12.*0.9) + keptLong, value(1, 0.9) + keptLong}},
		{short, []float64{value(2, 440/530./12) + keptShort, value(2, 2/12.) + keptShort, value(2, 4/12.*110/200) + keptShort, value(2, 440/12./(440/12.+90)) + keptShort}},
		{fresh, []float64{value(3, 1), value(3, 1), value(3, 1), value(3, 1)}},
	} {
		for i, want := range c.want {
			if got := -c.row.Costs[i]; math.Abs(got-want) > 1e-12 {
				t.Errorf("%s on %d devices is worth %g, want %g", c.row.Job.ID, c.row.Cells[i].Devices, got, want)
			}
		}
	}
	blind := elasticRowOf("blind", 1e6, grantOn("blind", 0, 2))
	for i := range blind.Cells {
		blind.Cells[i].Goodput = 0
	}
	(&elasticPacer{}).setCosts(s, []*sia.Row{blind})
	if now := blind.CellOf(s); now < 0 || blind.Costs[now] != -1 {
		t.Errorf("a job without goodput in cell %d is worth %v, want 1 there, and nothing for not being stopped", now, blind.Costs)
	}
	long.StartCost = 1000 * time.Second
	(&elasticPacer{}).setCosts(s, rows)
	if got, want := -long.Costs[2], value(1, 2/12.); math.Abs(got-want) > 1e-12 {
		t.Errorf("after restarts that take all of its time a job is worth %g elsewhere, want the %g of not being stopped", got, want)
	}
}

// Per job: its first grant, as node and devices, the chosen size, and its final grant.
func TestElasticPlace(t *testing.T) {
	type at struct{ node, devices int }
	for _, c := range []struct {
		name   string
		has    []at
		chosen []int
		want   []at
	}{
		{"the nearest to empty is cleared", []at{{0, 2}, {1, 1}, {}}, []int{2, 1, 4}, []at{{0, 2}, {0, 1}, {1, 4}}},
		{"a job that stays keeps its devices", []at{{0, 2}, {1, 2}}, []int{2, 2}, []at{{0, 2}, {1, 2}}},
		{"largest first", []at{{}, {}, {}}, []int{1, 4, 2}, []at{{1, 1}, {0, 4}, {1, 2}}},
		{"an evicted job waits", []at{{0, 4}, {}}, []int{0, 2}, []at{{}, {0, 2}}},
		{"the smallest is evicted first", []at{{0, 1}, {0, 2}, {1, 1}, {1, 2}, {}}, []int{1, 2, 1, 0, 4}, []at{{0, 1}, {0, 2}, {0, 1}, {}, {1, 4}}},
		{"not for one as large", []at{{0, 4}, {1, 2}, {1, 2}, {}}, []int{4, 2, 2, 2}, []at{{0, 4}, {1, 2}, {1, 2}, {}}},
		{"no preemption that does not help", []at{{0, 2}, {0, 2}, {1, 4}, {}}, []int{2, 2, 4, 12}, []at{{0, 2}, {0, 2}, {1, 4}, {0, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rows []*sia.Row
			var jobs []*scheduler.JobState
			var picks []int
			for i, has := range c.has {
				var g *scheduler.Grant
				if has.devices > 0 {
					g = grantOn(fmt.Sprint(i), has.node, has.devices)
				}
				r := elasticRowOf(fmt.Sprint(i), 100, g)
				rows, jobs = append(rows, r), append(jobs, r.JobState)
				picks = append(picks, slices.Index([]int{1, 2, 4, 12}, c.chosen[i]))
			}
			s := scheduler.NewSnapshot(0, twoNodes(), jobs)
			f := elasticPlacement{finder: candidate.NewFinder(policy.Deps{}), s: s, rows: rows, free: s.Idle()}
			f.place(picks)
			for i, want := range c.want {
				got := at{}
				if g := rows[i].Granted; g != nil {
					got = at{g.Slots[0].Node, g.Devices()}
					if !g.Elastic {
						t.Errorf("job %d may not choose its batch", i)
					}
				}
				if got != want {
					t.Errorf("job %d is at %v, want %v", i, got, want)
				}
				if want == c.has[i] && want.devices > 0 && rows[i].Granted != rows[i].Grant {
					t.Errorf("job %d is granted a copy of its present grant", i)
				}
			}
		})
	}
}

// On a node, rows with fewer devices are evicted, smallest first, until the job fits.
func TestElasticClear(t *testing.T) {
	cluster := spec.Cluster{Groups: []spec.NodeGroup{{Count: 1, Devices: 8, Accelerator: spec.Accelerator{Name: "x"}}}}
	var rows []*sia.Row
	var jobs []*scheduler.JobState
	for i, devices := range []int{2, 4, 1, 0} { // one is free
		r := elasticRowOf(fmt.Sprint(i), 100, nil)
		if devices > 0 {
			r.Granted = grantOn(fmt.Sprint(i), 0, devices)
		}
		rows, jobs = append(rows, r), append(jobs, r.JobState)
	}
	rows[3].Cells = append(rows[3].Cells, sia.Cell{Devices: 3, Options: []candidate.Config{{Devices: 3, Shape: spec.Packed(3, 8)}}})
	f := elasticPlacement{rows: rows, s: scheduler.NewSnapshot(0, cluster, jobs)}
	f.free = f.s.Idle()
	for _, r := range rows[:3] {
		if !f.free.Take(r.Granted.Slots) {
			t.Fatal("no room")
		}
	}
	picks := []int{1, 2, 0, 4}
	if got := f.clear(3, picks); !slices.Equal(got, []int{2, 0}) || f.free.Free[0] != 4 || rows[1].Granted == nil {
		t.Errorf("%v make way, %d devices are free, want 2 and 0, and 4", got, f.free.Free[0])
	}
	if got := f.clear(2, picks); got != nil {
		t.Errorf("%v make way for one of a device, want none", got)
	}
}

// The elastic policy gives reasons of its own, not those of sia.
func TestElasticPacerWeighsNothing(t *testing.T) {
	p, err := newElasticPacer(policy.Deps{}, nil, false)
	if _, ok := p.(sia.Weigher); ok || err != nil {
		t.Error("it weighs decisions", err)
	}
}

// Weights count, unknown steps are not read, and options without effect are rejected.
func TestElasticOptions(t *testing.T) {
	s := scheduler.NewSnapshot(0, twoNodes(), nil)
	first, second := elasticRowOf("first", 4000, nil), elasticRowOf("second", 400, nil)
	first.Job.Weight, first.Done, second.Done = 3, 10, 2000
	rank := func(guess bool) (a, b float64) {
		(&elasticPacer{guess: guess}).setCosts(s, []*sia.Row{first, second})
		return -first.Costs[3], -second.Costs[3]
	}
	most, least := 1.0, math.Pow(2, elasticRank) // by remaining time
	if a, b := rank(false); math.Abs(a-3*most) > 1e-12 || math.Abs(b-least) > 1e-12 {
		t.Errorf("the one with most left, of weight 3, is worth %g, the other %g, want %g and %g", a, b, 3*most, least)
	}
	if a, b := rank(true); math.Abs(a-3*least) > 1e-12 || math.Abs(b-most) > 1e-12 {
		t.Errorf("the one that has done least, of weight 3, is worth %g, the other %g, want %g and %g", a, b, 3*least, most)
	}
	for text, ok := range map[string]bool{"pacer": true, "pacer:steps=unknown": true, "pacer:price=3": false, "pacer:steps=known:late=1000": false} {
		specs, err := policy.NewRegistry(Info).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.NewRegistry(Info).New(specs[0], policy.Deps{Oracle: elasticNothing{}})
		if (err == nil) != ok {
			t.Errorf("%s: error %v", text, err)
		}
		if e, is := p.(*elasticPacer); ok && (!is || e.guess != (text != "pacer")) {
			t.Errorf("%s: %+v", text, p)
		}
	}
}

// elasticNothing is an Elastic oracle without predictions.
type elasticNothing struct{ scheduler.Oracle }

func (elasticNothing) Goodput(context.Context, *scheduler.JobState, *spec.NodeGroup, spec.Shape) (spec.Plan, float64, error) {
	return spec.Plan{}, 0, perfmodel.ErrNotCovered
}
