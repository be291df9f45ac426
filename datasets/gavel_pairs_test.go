package datasets

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func writeTable(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pairs.json")
	spectest.WriteFile(t, name, []byte(text), 0o600)
	return name
}

func TestGavelPairs(t *testing.T) {
	rows, err := ReadGavelPairs(t.Context(), writeTable(t, `{
	  "v100": {"('LM (batch size 5)', 2)": {"null": 8.0, "('ResNet-50 (batch size 64)', 2)": [3.0, 2.0], "('A3C', 2)": [0.0, 0.0]}},
	  "v100_unconsolidated": {"('LM (batch size 5)', 2)": {"('ResNet-50 (batch size 64)', 2)": [1.0, 1.0]}}}`))
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d pairs, %v, want one", len(rows), err)
	}
	// 3 steps/s summed over two devices, of 5 samples each, are 15 samples/s in all.
	r := rows[0]
	if r.RateA != 15 || r.RateB != 128 || r.A.Model.Name != "LM (batch size 5)" || r.B.Model.Name != "ResNet-50 (batch size 64)" {
		t.Errorf("%s at %g beside %s at %g samples/s, want LM at 15 and ResNet-50 at 128", r.A.Model.Name, r.RateA, r.B.Model.Name, r.RateB)
	}
	if r.A.Accelerator.Name != "V100-SXM2-16GB" || r.A.Plan.DP != 2 || r.A.Shape != r.B.Shape {
		t.Errorf("A is %v, B is %v", r.A, r.B)
	}
}

func TestGavelPairsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"v100": {"('A3C', 1)": {"('LM (batch size 5)', 2)": [1.0, 2.0]}}}`:   "is on 2 devices beside one on 1",
		`{"v100": {"('A3C', 1)": {"('LM (batch size 5)', 1)": [1.0]}}}`:        "is not a pair of numbers",
		`{"v100": {"('A3C', 1)": {"('LM (batch size 5)', 1)": 3}}}`:            "is not a pair of numbers",
		`{"v100": {"('A3C', 1)": {"('LM (batch size 5)', 1)": [1.0, -2.0]}}}`:  "is negative or too small",
		`{"v100": {"('A3C', 1)": {"LM": [1.0, 2.0]}}}`:                         "is not a pair of job type and device count",
		`{"tpu9": {"('A3C', 1)": {"('LM (batch size 5)', 1)": [1.0, 2.0]}}}`:   "tpu9",
		`{"v100": {"('A3C', 1)": {"('LM (batch size 5)', 1)": [1.0, 1e-300]}}`: "too small",
		`{"v100": {"('A3C', 1)": {"('LM (batch size 5)', 1)": [1.0, 1e308]}}`:  "too large",
	} {
		if _, err := ReadGavelPairs(t.Context(), writeTable(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// The published tables have 1881 measured pairs, all on one device. Both entries of
// a pair agree.
func TestGavelPairsPublished(t *testing.T) {
	for _, name := range []string{"simulation", "physical_cluster"} {
		rows, err := ReadGavelPairs(t.Context(), filepath.Join(spectest.Shared(t), "data", "gavel", "throughputs", name+"_throughputs.json"))
		if err != nil || len(rows) != 1881 {
			t.Fatalf("%s: %d pairs, %v, want 1881", name, len(rows), err)
		}
		type pair struct{ acc, a, b string }
		rates := map[pair][2]float64{}
		for _, r := range rows {
			if r.A.Plan.DP != 1 {
				t.Errorf("%s: %v is on %d devices", name, r.A.Model.Name, r.A.Plan.DP)
			}
			rates[pair{r.A.Accelerator.Name, r.A.Model.Name, r.B.Model.Name}] = [2]float64{r.RateA, r.RateB}
		}
		for p, v := range rates {
			if o := rates[pair{p.acc, p.b, p.a}]; o != [2]float64{v[1], v[0]} {
				t.Errorf("%s: %v is %v one way and %v the other", name, p, v, o)
			}
		}
	}
}
