package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// dl2Policies maps DL2's names to policies.
var dl2Policies = map[string]string{"DRF": "drf", "FIFO": "fifo", "SRTF": "srtf", "Tetris": "tetris", "Optimus": "optimus-oracle"}

// dl2Grid returns the table of speeds of DL2's simulator.
func dl2Grid(t testing.TB) *measured.Servers {
	t.Helper()
	speeds, err := datasets.ReadDL2Speeds(t.Context(), filepath.Join(spectest.Shared(t), "baselines/dl2/speed_grid.csv"))
	if err != nil || len(speeds.Bad) > 0 || !speeds.Listed {
		t.Fatal(err, speeds.Bad)
	}
	return measured.ListedServers(speeds.Rows)
}

// dl2Run simulates a trace of DL2 as its simulator does, and returns JCTs by job, in slots.
func dl2Run(t *testing.T, grid *measured.Servers, name, config string, index, nodes int) map[string]float64 {
	t.Helper()
	w, err := trace.Open(t.Context(), filepath.Join(spectest.Shared(t), "baselines/dl2/jobs.csv"), fmt.Sprintf("dl2=%s/%d", config, index))
	if err != nil || len(w.Bad) > 0 {
		t.Fatal(err, w.Bad)
	}
	cluster := mustCluster(t, fmt.Sprintf("%dx2xGTX1080Ti/8cpus", nodes))
	m, err := compat.Lookup("dl2")
	if err != nil {
		t.Fatal(err)
	}
	p := mustPolicy(t, policy.Spec{Name: name}, policy.Deps{Variants: m.Parts().Variants, Servers: grid, Oracle: planner.New(grid, planner.Options{})})
	slot := 300 * time.Second
	if config[:7] != "testbed" {
		slot = m.Round
	}
	r := mustSimulate(t, sim.Config{
		Cluster: cluster, Jobs: w.Jobs, Policy: p, PolicyName: name, Truth: sim.Predicted{Predictor: grid, Cluster: cluster},
		Round: slot, Rules: m.Parts().Rules, Audit: true,
	})
	out := map[string]float64{}
	for _, j := range r.Jobs {
		if !j.Finished {
			t.Fatalf("%s: job %s: %s%s", name, j.Job.ID, j.Rejected, j.Unfinished)
		}
		out[string(j.Job.ID)] = j.JCT().Seconds() / slot.Seconds()
	}
	return out
}

// TestDL2Testbed compares 30 traces job by job with DL2's simulator. The remaining differences are
// ties there, which the last digit of its arithmetic breaks.
func TestDL2Testbed(t *testing.T) {
	grid := dl2Grid(t)
	type run struct {
		config, trace, policy string
	}
	want := map[run]map[string]float64{}
	for _, r := range spectest.Table(t, "baselines/dl2/job_jct_testbed.csv") {
		k := run{r["config"], r["trace"], r["policy"]}
		if want[k] == nil {
			want[k] = map[string]float64{}
		}
		want[k][r["job"]] = number(t, r["jct_slots"])
	}
	if len(want) != 150 {
		t.Fatalf("%d runs, want 150", len(want))
	}
	equal, worst := map[string]int{}, map[string]float64{}
	for k, jcts := range want {
		trace, err := strconv.Atoi(k.trace)
		if err != nil {
			t.Fatal(err)
		}
		got := dl2Run(t, grid, dl2Policies[k.policy], k.config, trace, 6)
		var ours, theirs float64
		for id, jct := range jcts {
			if math.Abs(got[id]-jct) < 1e-3 {
				equal[k.policy]++
			}
			ours, theirs = ours+got[id], theirs+jct
		}
		worst[k.policy] = max(worst[k.policy], math.Abs(ours/theirs-1))
	}
	for name, least := range map[string]int{"DRF": 300, "FIFO": 300, "SRTF": 300, "Optimus": 298, "Tetris": 296} {
		t.Logf("%s: %d of 300 jobs equal, average JCT of a trace off by %.4f at most", name, equal[name], worst[name])
		if equal[name] < least || worst[name] > 0.02 {
			t.Errorf("%s: %d of 300 jobs equal, average JCT of a trace off by %.4f at most; want %d and 0.02", name, equal[name], worst[name], least)
		}
	}
}

// TestDL2Small compares the averages over traces of larger clusters.
func TestDL2Small(t *testing.T) {
	grid := dl2Grid(t)
	configs := map[string]int{"small-e3000-Google_Trace-real": 48, "small-e3000-Uniform-real": 48, "small-e3000-Poisson-real": 48}
	if testing.Short() {
		configs = map[string]int{"small-e3000-Uniform-real": 48}
	}
	for _, r := range spectest.Table(t, "baselines/dl2/summary.csv") {
		nodes, ok := configs[r["config"]]
		if !ok {
			continue
		}
		var all []float64
		for trace := range int(number(t, r["traces"])) {
			for _, jct := range dl2Run(t, grid, dl2Policies[r["policy"]], r["config"], trace, nodes) {
				all = append(all, jct)
			}
		}
		slices.Sort(all)
		sum := 0.0
		for _, v := range all {
			sum += v
		}
		got, want := sum/float64(len(all)), number(t, r["avg_jct_slots"])
		t.Logf("%s %s: %.4f slots, DL2's simulator %.4f", r["config"], r["policy"], got, want)
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s %s: average JCT %.4f slots, DL2's simulator %.4f", r["config"], r["policy"], got, want)
		}
	}
}
