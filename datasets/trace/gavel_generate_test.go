package trace

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// The jobs are those that the published generator draws with seed 0, one by one;
// powers may differ in the last digits.
func TestGenerateGavelAsPublished(t *testing.T) {
	shared := spectest.Shared(t)
	rows, err := datasets.ReadGavelTable(t.Context(), filepath.Join(shared, "data", "gavel", "throughputs", "simulation_throughputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(shared, "baselines", "gavel", "inputs", "static100_multi_seed0.csv")
	there, err := Open(t.Context(), file, "gavel")
	if err != nil {
		t.Fatal(err)
	}
	here, err := GenerateGavel(rows, GavelOptions{Jobs: 100, PerHour: math.Inf(1), Wide: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range there.Jobs {
		g := here[i]
		if g.ID != j.ID || g.Model.Name != j.Model.Name || g.Devices != j.Devices || g.Submit != j.Submit || math.Abs(g.Steps/j.Steps-1) > 1e-12 {
			t.Errorf("job %s: %s on %d at %v, %v steps; here %s: %s on %d at %v, %v", j.ID, j.Model.Name, j.Devices, j.Submit, j.Steps,
				g.ID, g.Model.Name, g.Devices, g.Submit, g.Steps)
		}
	}
}

func TestGenerateGavelOfNothing(t *testing.T) {
	for _, o := range []GavelOptions{{}, {Jobs: 1}, {PerHour: 1}, {Jobs: 1, PerHour: math.NaN()}, {Jobs: 1, PerHour: 1}} {
		if jobs, err := GenerateGavel(nil, o); err == nil {
			t.Errorf("%+v: %d jobs", o, len(jobs))
		}
	}
}
