package query

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// compared returns the reasons for a step that takes ratio times the predicted second, by their names. 95 % of all steps
// are predicted within a factor of spread.
func compared(ratio, spread float64) map[string]float64 {
	row := &PlanRow{StepTimeSec: 1, StepTimeLo: 1 / spread, StepTimeHi: spread}
	out := map[string]float64{}
	for _, c := range Compare(&Resolved{}, spec.Config{}, row, ratio).Causes {
		out[c.Cause] = c.Probability
	}
	return out
}

// Up to ten times the predicted step several reasons stay possible. The probabilities of every step add up to 1.
func TestCausesStayPossible(t *testing.T) {
	for _, spread := range []float64{1.01, 1.1, 1.4, 3} {
		for _, ratio := range []float64{1e-6, 0.01, 0.2, 0.8, 1, 1.2, 1.5, 2, 3, 5, 10, 100, 1e6} {
			at := compared(ratio, spread)
			total, most := 0.0, 0.0
			for _, p := range at {
				total, most = total+p, max(most, p)
			}
			if !(math.Abs(total-1) < 1e-9) || ratio >= 1 && ratio <= 10 && most > 0.975 || ratio > 1 && ratio < 3 && most > 0.8 {
				t.Errorf("%g times, spread %g: the probabilities are %v", ratio, spread, at)
			}
		}
	}
	const fault, model = "another model, plan or stack than was read here, or a fault", "nothing but the error of the prediction"
	if at := compared(5, 1.4); at[fault] < 0.3 || at["waiting for data loading"] < 0.01 || at[model] > 1e-3 {
		t.Errorf("5 times: %v", at)
	}
	if at := compared(1, 1.4); at[model] < 0.5 || at[fault] > 0.02 {
		t.Errorf("as predicted: %v", at)
	}
}

// The density of a slowed step integrates to 1, and its mean is that of what is added.
func TestSlowed(t *testing.T) {
	for _, sd := range []float64{0.02, 0.3, 2} {
		for _, m := range []float64{0, 0.02, 0.1, 0.34, 1} {
			const step = 1e-3
			total, mean := 0.0, 0.0
			for x := -20.0; x < 40; x += step {
				p := math.Exp(slowed(x, sd, m)) * step
				total, mean = total+p, mean+x*p
			}
			want := m
			if m > 0 {
				want = max(m, sd/8)
			}
			if math.Abs(total-1) > 1e-3 || math.Abs(mean-want) > 2e-3 {
				t.Errorf("sd %g, mean %g: integral %g, mean %g", sd, m, total, mean)
			}
		}
	}
}

// Both forms of the logarithm agree where they meet.
func TestLogErfc(t *testing.T) {
	below, above := logErfc(20-1e-9), logErfc(20+1e-9)
	if math.Abs(below-above) > 1e-6 || math.Abs(logErfc(26)-math.Log(math.Erfc(26))) > 1e-5 {
		t.Errorf("%g and %g around 20, %g at 26", below, above, logErfc(26))
	}
}
