package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// deadlinesMet returns the part of the jobs that end by their deadlines, by policy, and the number
// of admitted jobs that do not, over a number
// of seeds: 120 jobs on 64 A100 at a load, with deadlines of 0.5 to 1.5 run times, those of
// ElasticFlow's evaluation, and known speeds.
func deadlinesMet(t *testing.T, load float64, seeds int, admission string, policies ...string) (met map[string]float64, late int) {
	t.Helper()
	met = map[string]float64{}
	for seed := range seeds {
		s, err := experiment.New(t.Context(), experiment.Options{
			Workload: fmt.Sprintf("synthetic:models=BERT-large+GPT2-XL+Llama2-7B,jobs=120,load=%gx64,deadline=0.5-1.5", load),
			Cluster:  "8x8xA100", Truth: "fitted:analytic", StartCost: "30", Policy: strings.Join(policies, ","), Admission: admission, Seed: uint64(seed + 101),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Run(t.Context(), experiment.Hooks{Done: func(r *sim.Result) {
			for _, j := range r.Jobs {
				switch {
				case j.Finished && j.End <= j.Job.Deadline:
					met[r.Policy] += 1 / float64(len(r.Jobs)*seeds)
				case j.Rejected == "":
					late++
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return met, late
}

// ElasticFlow meets more deadlines than earliest deadline first, than Gavel with deadlines and
// than the policies that know of none, at every load. Of the jobs that the admission rule lets in
// at most 1 % are late, although speeds are known: plans count devices, and some jobs are moved
// to other nodes more often than the reserve of one start allows.
func TestElasticFlowDeadlines(t *testing.T) {
	if testing.Short() {
		t.Skip("dozens of simulations")
	}
	policies := []string{"elasticflow", "edf", "gavel-slo", "fifo-backfill", "srtf-predicted", "sia", "rubick", "pacer"}
	for _, load := range []float64{0.6, 0.9, 1.2} {
		met, _ := deadlinesMet(t, load, 5, "", policies...)
		admitted, late := deadlinesMet(t, load, 5, "deadline:start=30", "elasticflow")
		if late > 6 {
			t.Errorf("load %g: %d of 600 jobs are admitted and late", load, late)
		}
		line := fmt.Sprintf("load %g: elasticflow behind admission rule deadline %.3f, %d late", load, admitted["elasticflow"], late)
		for _, p := range policies {
			line += fmt.Sprintf(", %s %.3f", p, met[p])
		}
		t.Log(line)
		for _, p := range policies[1:] {
			if met[p] > met["elasticflow"] {
				t.Errorf("load %g: %s meets %.3f of the deadlines, elasticflow %.3f", load, p, met[p], met["elasticflow"])
			}
		}
	}
}
