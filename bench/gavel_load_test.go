package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// gavelJobs draws jobs as Gavel's simulator generates them (scheduler/utils.py at
// commit c4fa400): the 26 types evenly; run times on V100 of 60 s x 10^U(1.5, 3)
// for four in five and 60 s x 10^U(3, 4) for the others; Poisson arrivals; of
// several devices, where asked for, only types that run on them.
func gavelJobs(t *measured.Table, seed uint64, n int, perHour float64, wide bool) []spec.Job {
	rng := rand.New(rand.NewPCG(seed, 0))
	v100 := map[int]map[string]spec.Config{} // by devices and type
	rate := map[string]float64{}
	key := func(c spec.Config) string { return fmt.Sprint(c.Model.Name, c.Plan.DP) }
	for _, c := range t.Configs() {
		if strings.HasPrefix(c.Accelerator.Name, "V100") {
			if v100[c.Plan.DP] == nil {
				v100[c.Plan.DP] = map[string]spec.Config{}
			}
			v100[c.Plan.DP][c.Model.Name] = c
			p, _ := t.Predict(context.Background(), c)
			rate[key(c)] = p.Throughput / float64(c.Plan.GlobalBatch())
		}
	}
	names := func(devices int) (out []string) {
		for name := range v100[devices] {
			out = append(out, name)
		}
		slices.Sort(out)
		return out
	}
	types := map[int][]string{1: names(1), 2: names(2), 4: names(4), 8: names(8)}
	var jobs []spec.Job
	at := 0.0
	for i := range n {
		devices := 1
		if u := rng.Float64(); wide && u >= 0.7 {
			devices = map[bool]int{true: 2, false: 4}[u < 0.8]
			if u >= 0.95 {
				devices = 8
			}
		}
		sec := 60 * math.Pow(10, 1.5+1.5*rng.Float64())
		if rng.Float64() >= 0.8 {
			sec = 60 * math.Pow(10, 3+rng.Float64())
		}
		name := types[devices][rng.IntN(len(types[devices]))]
		c := v100[devices][name]
		_, batch := datasets.GavelModel(name)
		jobs = append(jobs, spec.Job{
			ID: spec.JobID(fmt.Sprint(i)), Submit: time.Duration(at * float64(time.Second)), Model: c.Model, Devices: devices,
			Plan: spec.Plan{DP: devices, MicroBatch: batch}.Normal(), Steps: sec * rate[key(c)],
		})
		at += rng.ExpFloat64() * 3600 / perHour
	}
	return jobs
}

// A window of a thousand jobs of one device each, at 4.0 jobs an hour on 36 devices
// of each type, is simulated in less than half a second of one idle core.
func TestGavelWindow(t *testing.T) {
	_, cluster, table := gavelRun{input: gavelStatic, cluster: gavelLarge}.world(t)
	r := gavelRun{policy: "gavel-las", jobs: gavelJobs(table, 0, 8000, 4, false), score: report.Score{First: "4000", Last: "4999"}}
	out := r.simulate(t, cluster, table)
	s := report.Summarize(out, r.score)
	t.Logf("mean %.2f h, %d finished, utilisation %.2f, in %v", float64(s.AvgJCT)/3600, s.Finished, float64(s.Utilisation), out.Elapsed)
	if s.Finished != 1000 {
		t.Errorf("%d jobs of the window finish, want 1000", s.Finished)
	}
}

// How much earlier jobs are done when it is known how fast they are on every type,
// over load: jobs 1000 to 1499 of generated ones of one device, three seeds, in the
// published semantics, in which nothing else knows speeds.
func TestGavelAwareness(t *testing.T) {
	if os.Getenv("PACER_SOAK") == "" {
		t.Skip("takes minutes; set PACER_SOAK=1")
	}
	_, cluster, table := gavelRun{input: gavelStatic, cluster: gavelLarge}.world(t)
	for _, perHour := range []float64{2, 4, 5.2} {
		var ratios []float64
		for seed := range uint64(3) {
			r := gavelRun{jobs: gavelJobs(table, seed, 6000, perHour, false), score: report.Score{First: "1000", Last: "1499"}, mode: "gavel"}
			r.policy = "gavel-las"
			aware := report.Summarize(r.simulate(t, cluster, table), r.score)
			r.policy = "gavel-las:agnostic"
			agnostic := report.Summarize(r.simulate(t, cluster, table), r.score)
			ratios = append(ratios, float64(agnostic.AvgJCT/aware.AvgJCT))
			t.Logf("%g/h, seed %d: aware %.2f h, agnostic %.2f h, ratio %.2f", perHour, seed, float64(aware.AvgJCT)/3600, float64(agnostic.AvgJCT)/3600, ratios[seed])
			if aware.Finished != 500 || agnostic.Finished != 500 || ratios[seed] <= 1 {
				t.Errorf("%d and %d jobs finish; knowing speeds makes them %g times as quick", aware.Finished, agnostic.Finished, ratios[seed])
			}
		}
		mean := (ratios[0] + ratios[1] + ratios[2]) / 3
		sd := math.Sqrt((sq(ratios[0]-mean) + sq(ratios[1]-mean) + sq(ratios[2]-mean)) / 2)
		t.Logf("%g/h: ratio %.2f +- %.2f (95 %%, Student's t)", perHour, mean, 4.303*sd/math.Sqrt(3))
	}
}

func sq(x float64) float64 { return x * x }
