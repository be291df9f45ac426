package bench

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// bloxRun is a simulation with the semantics of Blox.
type bloxRun struct {
	mode      string // as --compat
	policy    string
	admission string
	nodes     int
	perNode   int
	jobs      []spec.Job
	score     report.Score
}

func (b bloxRun) run(tb interface {
	Helper()
	Fatal(...any)
}) *sim.Result {
	tb.Helper()
	m, err := compat.Parse(b.mode)
	if err != nil {
		tb.Fatal(err)
	}
	d := policy.Deps{Variants: m.Parts().Variants}
	if d.Placer, err = m.Parts().Placer(m.Placement); err != nil {
		tb.Fatal(err)
	}
	p, err := builtin.Policies.New(policy.Spec{Name: b.policy}, d)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := admission.New(b.admission, d)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := sim.Run(context.Background(), sim.Config{
		Cluster: spec.Cluster{Groups: []spec.NodeGroup{{Count: b.nodes, Devices: b.perNode}}},
		Jobs:    b.jobs, Policy: p, PolicyName: b.policy, Truth: sim.Durations{}, Admission: a,
		Round: m.Round, Rules: m.Parts().Rules, Score: b.score.Has,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// Every tracked job of set C completes in the second in which it completes in Blox. Means and
// preemptions are those recorded with the jobs. Blox did not run LasAcc12 on set C; an independent
// program with the same rules gives the result of Las there.
func TestBloxSetC(t *testing.T) {
	dir := filepath.Join(spectest.Shared(t), "baselines", "blox")
	w, err := trace.Open(t.Context(), filepath.Join(dir, "inputs", "C_jobs.csv"), "csv")
	if err != nil || len(w.Bad) > 0 {
		t.Fatal(err, w.Bad)
	}
	jct, predicted := spectest.Table(t, "baselines/blox/outputs/C_jct.csv"), spectest.Table(t, "baselines/blox/outputs/predicted.csv")
	for _, c := range []struct{ name, policy, admission, column string }{
		{"Fifo", "fifo", "", "jct_Fifo_s"},
		{"Las", "las", "", "jct_Las_s"},
		{"Srtf", "srtf", "", "jct_Srtf_s"},
		{"LasAcc12", "las", "load:1.2", "jct_Las_s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := bloxRun{mode: "blox", policy: c.policy, admission: c.admission, nodes: 20, perNode: 4, jobs: w.Jobs,
				score: report.Score{First: "300", Last: "600"}}.run(t)
			equal := 0
			for _, j := range jct {
				if got := finished(r, j["job_id"]).JCT().Seconds(); got != number(t, j[c.column]) {
					t.Errorf("job %s takes %g s, in Blox %s", j["job_id"], got, j[c.column])
				} else {
					equal++
				}
			}
			if t.Logf("%d of %d jobs equal", equal, len(jct)); equal != 301 {
				t.Errorf("%d jobs equal, want 301", equal)
			}
			s := report.Summarize(r, report.Score{First: "300", Last: "600"})
			want := predicted[slices.IndexFunc(predicted, func(row map[string]string) bool { return row["set"] == "C" && row["policy"] == c.name })]
			for figure, got := range map[string]float64{"avg_jct_s": float64(s.AvgJCT), "p50_jct_s": float64(s.MedianJCT),
				"p99_jct_s": float64(s.P99JCT), "max_jct_s": float64(s.MaxJCT)} {
				if want := number(t, want[figure]); math.Abs(got-want) > 0.005 {
					t.Errorf("%s is %g, want %g", figure, got, want)
				}
			}
			if got := preemptions(r); got != int(number(t, want["preemptions"])) {
				t.Errorf("%d preemptions, want %s", got, want["preemptions"])
			}
		})
	}
}

// preemptions counts the preemptions of all jobs.
func preemptions(r *sim.Result) (n int) {
	for _, j := range r.Jobs {
		n += j.Preemptions
	}
	return n
}

func finished(r *sim.Result, id string) sim.JobRecord {
	i := slices.IndexFunc(r.Jobs, func(j sim.JobRecord) bool { return string(j.Job.ID) == id })
	if i < 0 || !r.Jobs[i].Finished {
		return sim.JobRecord{}
	}
	return r.Jobs[i]
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// On random workloads, with jobs of several devices and admission by load, the engine with Blox
// semantics gives the result of the published rules step by step, with the placement fault and
// without.
func TestBloxRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bloxRun{
			policy:    rapid.SampledFrom([]string{"fifo", "las", "srtf", "tiresias"}).Draw(t, "policy"),
			admission: rapid.SampledFrom([]string{"", "load:1.2", "load:0.5"}).Draw(t, "admission"),
			mode:      rapid.SampledFrom([]string{"blox", "blox:whole-demand=false"}).Draw(t, "mode"),
			nodes:     rapid.IntRange(1, 5).Draw(t, "nodes"),
			perNode:   rapid.SampledFrom([]int{2, 4}).Draw(t, "per node"),
		}
		unit := rapid.SampledFrom([]float64{0.7, 100, 300, 90000}).Draw(t, "unit") // of durations, s
		at, most := 0, 30
		if unit > 1000 {
			most = 7 // enough for a job to become urgent
		}
		for i := range rapid.IntRange(1, most).Draw(t, "jobs") {
			at += rapid.SampledFrom([]int{0, 1, 150, 300, 2000}).Draw(t, "gap")
			b.jobs = append(b.jobs, spec.Job{
				ID: spec.JobID(strconv.Itoa(i)), Submit: time.Duration(at) * time.Second,
				Devices:  min(rapid.SampledFrom([]int{1, 1, 1, 2, 4, 8}).Draw(t, "devices"), b.nodes*b.perNode),
				Duration: time.Duration(unit * float64(rapid.IntRange(1, 40).Draw(t, "duration")) * 1e9),
			})
		}
		r := b.run(t)
		want := bloxRules(b)
		for i := range b.jobs {
			if got := finished(r, strconv.Itoa(i)).End.Seconds(); got != want[i] {
				t.Fatalf("%s %s %s on %d x %d: job %d of %v ends at %g s, by the rules at %g", b.mode, b.policy, b.admission, b.nodes, b.perNode, i,
					b.jobs, got, want[i])
			}
		}
	})
}

// ruled is a job under the rules of Blox, times in seconds.
type ruled struct {
	id, submit, gpus int
	duration, served float64
	waited           float64 // in a row
	urgent           bool
	on               map[int]int // GPUs by node, nil = not running
}

// bloxRules applies the rules of a round literally, every 300 s, until all jobs are done. It
// returns the completion times; 0 = never.
func bloxRules(b bloxRun) []float64 {
	ends := make([]float64, len(b.jobs))
	free := make([]int, b.nodes)
	for i := range free {
		free[i] = b.perNode
	}
	var outside, active []*ruled
	for i, j := range b.jobs {
		outside = append(outside, &ruled{id: i, submit: int(j.Submit.Seconds()), gpus: j.Devices, duration: j.Duration.Seconds()})
	}
	for t, left := 0, len(b.jobs); left > 0 && t < 300*100000; t += 300 {
		var still []*ruled
		for _, j := range active { // 1: progress
			if j.on != nil {
				j.served += 300
			}
			if j.on != nil && j.served >= j.duration {
				ends[j.id], left = float64(t), left-1
				free = give(free, j)
			} else {
				still = append(still, j)
			}
		}
		active = still
		for len(outside) > 0 && outside[0].submit <= t && b.mayEnter(active) { // 2: arrivals
			active, outside = append(active, outside[0]), outside[1:]
		}
		order := slices.Clone(active) // 3: order
		slices.SortStableFunc(order, func(x, y *ruled) int { return b.compareRuled(x, y) })
		for i, j := range order { // 4: walk
			if j.on != nil {
				continue
			}
			fits := b.fit(free, j)
			for k := len(order) - 1; k > i && !fits; k-- {
				if order[k].on != nil {
					free = give(free, order[k])
					order[k].waited = -300
					fits = b.fit(free, j)
				}
			}
			if !fits {
				break
			}
		}
		for _, j := range active {
			if j.waited += 300; j.on != nil {
				j.waited = 0
			}
			j.urgent = j.urgent || j.waited >= 3_600_000
		}
	}
	return ends
}

func (b bloxRun) mayEnter(active []*ruled) bool {
	var x float64
	if n, _ := fmt.Sscanf(b.admission, "load:%g", &x); n == 0 {
		return true
	}
	demand := 0
	for _, j := range active {
		demand += j.gpus
	}
	return float64(demand) <= x*float64(b.nodes*b.perNode)
}

func (b bloxRun) compareRuled(x, y *ruled) int {
	if x.urgent != y.urgent {
		if x.urgent {
			return -1
		}
		return 1
	}
	key := map[string]func(*ruled) float64{
		"fifo":     func(j *ruled) float64 { return float64(j.submit) },
		"las":      func(j *ruled) float64 { return j.served },
		"tiresias": func(j *ruled) float64 { return j.served },
		"srtf":     func(j *ruled) float64 { return j.duration - j.served },
	}[b.policy]
	switch a, c := key(x), key(y); {
	case a < c:
		return -1
	case a > c:
		return 1
	}
	return 0
}

// fit places j by rule 5 and reports whether it succeeded.
func (b bloxRun) fit(free []int, j *ruled) bool {
	got := 0
	on := map[int]int{}
	for node, has := range free {
		want := j.gpus
		if b.mode != "blox" {
			want -= got
		}
		if n := min(has, want); n > 0 {
			on[node] = n
			got += n
		}
		if got == j.gpus {
			break
		}
	}
	if got != j.gpus {
		return false
	}
	for node, n := range on {
		free[node] -= n
	}
	j.on = on
	return true
}

func give(free []int, j *ruled) []int {
	for node, n := range j.on {
		free[node] += n
	}
	j.on = nil
	return free
}
