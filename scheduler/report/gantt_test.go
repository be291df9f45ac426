package report

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// drawnRun simulates n random jobs under a preemptive policy and records it.
func drawnRun(t rapid.TB, seed uint64, n, nodes, perNode int) (*sim.Result, *Gantt) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	c := sim.Config{
		Cluster:    spec.Cluster{Groups: []spec.NodeGroup{{Count: nodes, Devices: perNode, Accelerator: spec.Accelerator{Name: "device"}}}},
		PolicyName: "las", Truth: sim.Durations{}, Costs: sim.PerStart(func(spec.Job) time.Duration { return 7 * time.Second }),
	}
	placer, err := place.Lookup("spread")
	if err != nil {
		t.Fatal(err)
	}
	if c.Policy, err = builtin.Policies.New(policy.Spec{Name: "las"}, policy.Deps{Placer: placer}); err != nil {
		t.Fatal(err)
	}
	var at time.Duration
	for i := range n {
		at += time.Duration(rng.ExpFloat64() * float64(time.Minute))
		size := min(1<<rng.IntN(5), nodes*perNode)
		c.Jobs = append(c.Jobs, spec.Job{
			ID: spec.JobID(fmt.Sprint(i)), Submit: at, Devices: size, Plan: spec.Plan{DP: size, MicroBatch: 1, AccumSteps: 1},
			Duration: time.Duration(math.Exp(rng.NormFloat64()+6) * float64(time.Second)),
		})
	}
	g := NewGantt(c.Cluster)
	c.Observe = g.Observe
	r, err := sim.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	g.End(RunEnd(r))
	return r, g
}

// TestGanttKeepsDeviceSeconds checks that bars do not overlap, and that bars and rows
// add up to the device-seconds that jobs held.
func TestGanttKeepsDeviceSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, perNode := rapid.IntRange(1, 70).Draw(t, "nodes"), rapid.IntRange(1, 7).Draw(t, "devices")
		r, g := drawnRun(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 40).Draw(t, "jobs"), nodes, perNode)
		want := map[spec.JobID]float64{}
		total := 0.0
		for _, j := range r.Jobs {
			want[j.Job.ID] = j.Attained
			total += j.Attained
		}
		free := make([]time.Duration, nodes*perNode) // when each lane was released
		for _, b := range sortedBars(g.bars) {
			for lane := b.lane; lane < b.lane+b.n; lane++ {
				if b.from < free[lane] {
					t.Fatalf("lane %d: job %s from %v, but the one before held it until %v", lane, b.job, b.from, free[lane])
				}
				free[lane] = b.to
			}
			want[b.job] -= float64(b.n) * (b.to - b.from).Seconds()
		}
		for id, left := range want {
			if math.Abs(left) > 1e-6 {
				t.Errorf("job %s held %v device-seconds more than its bars", id, left)
			}
		}
		for _, row := range g.rows {
			for _, sum := range row.sums {
				if sum < 0 || sum > float64(row.devices)*g.bucket.Seconds()*(1+1e-9) {
					t.Errorf("a row of %d devices held %v device-seconds in %v", row.devices, sum, g.bucket)
				}
				total -= sum
			}
		}
		if math.Abs(total) > 1e-6*r.Jobs[0].Attained+1e-3 {
			t.Errorf("the jobs held %v device-seconds more than the rows", total)
		}
	})
}

func TestGanttChart(t *testing.T) {
	_, g := drawnRun(t, 1, 60, 4, 8)
	bars, ok := g.chart(pageBars)
	if !ok || bars.Lanes != 32 || len(bars.Nodes) != 4 || len(bars.Bars) != 5*len(g.bars) || bars.Rows != nil || len(bars.Jobs) != 60 {
		t.Errorf("%v: %d lanes, nodes at %v, %d numbers for %d bars, %d jobs", ok, bars.Lanes, bars.Nodes, len(bars.Bars), len(g.bars), len(bars.Jobs))
	}
	rows, ok := g.chart(len(g.bars) - 1)
	if !ok || rows.Bars != nil || len(rows.Rows) != 4 || rows.Names[3] != "node 3" || !strings.Contains(rows.About, "32 devices of 4 nodes") {
		t.Errorf("%v: %d bars, rows %v: %s", ok, len(rows.Bars), rows.Names, rows.About)
	}
	for i, row := range rows.Rows {
		if len(row) > ganttBuckets || len(row) < ganttBuckets/2 {
			t.Errorf("row %d has %d steps", i, len(row))
		}
	}
	var none *Gantt
	if _, ok := none.chart(1); ok {
		t.Error("a chart of no record")
	}
	if _, ok := NewGantt(spec.Cluster{}).chart(1); ok {
		t.Error("a chart of nothing")
	}
}

// TestGanttOfNodesThatAreDown checks that their bars belong to no job and do not
// count as held.
func TestGanttOfNodesThatAreDown(t *testing.T) {
	g := NewGantt(spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 3}}})
	j, s := &spec.Job{ID: "a"}, time.Second
	both := &scheduler.Grant{Slots: []scheduler.Slot{{Node: 0, Devices: 1}, {Node: 1, Devices: 2}}}
	for _, e := range []sim.Event{
		{Kind: sim.Started, Job: j, Grant: both}, {At: 10 * s, Kind: sim.Failed, Job: j, Node: 1, Grant: both}, {At: 10 * s, Kind: sim.NodeDown, Node: 1},
		{At: 25 * s, Kind: sim.NodeUp, Node: 1},
	} {
		g.Observe(e)
	}
	g.End(30 * s)
	want := []bar{{job: "a", lane: 0, n: 1, to: 10 * s}, {job: "a", lane: 3, n: 2, to: 10 * s}, {job: nodeID(1), down: true, lane: 3, n: 3, from: 10 * s, to: 25 * s}}
	if got := sortedBars(g.bars); !slices.Equal(got, want) {
		t.Errorf("bars %v, want %v", got, want)
	}
	if c, ok := g.chart(pageBars); !ok || c.Bars[14] != -1 || len(c.Jobs) != 1 || !strings.Contains(c.About, "were down") {
		t.Errorf("%v: %v of jobs %v: %s", ok, c.Bars, c.Jobs, c.About)
	}
	for i, held := range []float64{10, 20} {
		for _, sum := range g.rows[i].sums {
			held -= sum
		}
		if held != 0 {
			t.Errorf("row %d: %v device-seconds are missing", i, held)
		}
	}
}

// TestGanttIsBounded checks that above the limits of devices and bars only rows are
// drawn, and that the page stays small.
func TestGanttIsBounded(t *testing.T) {
	_, large := drawnRun(t, 2, 40, 100, 6)
	c, ok := large.chart(pageBars)
	if !ok || len(c.Rows) != ganttRows || c.Names[0] != "nodes 0 to 1" || c.Names[63] != "node 99" {
		t.Errorf("%v: %d rows, the last of %v", ok, len(c.Rows), c.Names[len(c.Names)-1])
	}
	long := NewGantt(spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 1}}})
	grant := &scheduler.Grant{Slots: []scheduler.Slot{{Node: 1, Devices: 1}}}
	for i := range ganttBars + 1 {
		j := &spec.Job{ID: spec.JobID(fmt.Sprint(i))}
		long.Observe(sim.Event{At: time.Duration(2*i) * time.Second, Kind: sim.Started, Job: j, Grant: grant})
		long.Observe(sim.Event{At: time.Duration(2*i+1) * time.Second, Kind: sim.Completed, Job: j, Grant: grant})
	}
	long.End(0)
	c, ok = long.chart(pageBars)
	if half := strings.Trim(c.Rows[1], "i"); !ok || len(c.Bars) > 0 || len(long.bars) > 0 || len(half) > 1 || strings.Trim(c.Rows[0], "0") != "" {
		t.Errorf("%v: %d bars, rows %v, want rows alone of nothing and of half", ok, len(long.bars), c.Rows)
	}
	var b bytes.Buffer
	runs := []*sim.Result{manyJobs(10), manyJobs(10)}
	mustWriteHTML(t, &b, HTMLInput{Results: runs, Gantts: []*Gantt{large, long}})
	if b.Len() > 1<<20 {
		t.Errorf("the page has %d bytes", b.Len())
	}
}

// TestHTMLOfMostBars checks that a page with the largest number of bars, of jobs with
// long names, stays below 5 MB.
func TestHTMLOfMostBars(t *testing.T) {
	in := HTMLInput{}
	for range pageBars / ganttBars {
		g := NewGantt(spec.Cluster{Groups: []spec.NodeGroup{{Count: 64, Devices: 8}}})
		for i := range ganttBars {
			g.bars = append(g.bars, bar{
				job: spec.JobID(fmt.Sprintf("%064d", i)), lane: 500 + i%12, n: 10, from: time.Duration(i) * time.Hour, to: time.Duration(i+900) * time.Hour,
			})
		}
		g.End((ganttBars + 900) * time.Hour)
		in.Results, in.Gantts = append(in.Results, manyJobs(100)), append(in.Gantts, g)
	}
	var b bytes.Buffer
	mustWriteHTML(t, &b, in)
	if n := bytes.Count(b.Bytes(), []byte(`"bars":[`)); n != len(in.Gantts) || b.Len() > 5e6 {
		t.Errorf("%d charts with bars in %d bytes", n, b.Len())
	}
}
