package experiment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestBackfillReference: results have the completions of guaranteed jobs under fifo-backfill, whether it is among the
// policies or not, and with the start costs of the simulation.
func TestBackfillReference(t *testing.T) {
	cluster, err := catalog.Cluster("1x4")
	if err != nil {
		t.Fatal(err)
	}
	jobs := []spec.Job{
		{ID: "a", Devices: 4, Duration: 1000 * time.Second, Guaranteed: true},
		{ID: "b", Submit: 10 * time.Second, Devices: 4, Duration: 100 * time.Second},
	}
	for _, policies := range []string{"srtf", "srtf,fifo-backfill", "fifo-backfill,srtf"} {
		s, err := experiment.New(t.Context(), experiment.Options{Policy: policies, StartCost: "30", Given: experiment.Given{Jobs: jobs, Cluster: cluster}})
		if err != nil {
			t.Fatal(err)
		}
		results, err := s.Run(t.Context(), experiment.Hooks{})
		if err != nil || len(results) != 1+strings.Count(policies, ",") {
			t.Fatal(len(results), err)
		}
		for _, r := range results {
			a, b := r.Jobs[0], r.Jobs[1]
			if want := 1030 * time.Second; a.Backfill != want || a.AsSubmitted != want || b.Backfill != 0 {
				t.Errorf("%s of %s: a %v, as submitted %v, want %v; b %v, want none", r.Policy, policies, a.Backfill, a.AsSubmitted, want, b.Backfill)
			}
			if late := a.End - a.Backfill; r.Policy == "fifo-backfill" && late != 0 || r.Policy == "srtf" && late < 100*time.Second {
				t.Errorf("%s: a is %v late", r.Policy, late)
			}
		}
	}
}
