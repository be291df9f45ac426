package query

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Cause is a reason why a measured step differs from the prediction.
type Cause struct {
	Cause       string  `json:"cause"`
	Probability float64 `json:"probability"`
}

// Comparison sets a measured step against the prediction.
type Comparison struct {
	StepS    float64 `json:"step_time_s" doc:"As measured."`
	Ratio    float64 `json:"ratio" doc:"Measured divided by predicted."`
	Quantile float64 `json:"quantile" doc:"Share of the predicted distribution that is faster than the measurement."`
	Causes   []Cause `json:"causes" doc:"Possible reasons with their probabilities, given the uncertainty of the model; they add up to 1."`
	MFU      float64 `json:"mfu,omitempty" doc:"Of the measured step."`
}

// Compare sets a measured step of cfg, in seconds, against its prediction row by found. It weighs reasons by Bayes'
// rule. The logarithm of the ratio is the error of the prediction, which is normal, plus what the reason adds, which is
// exponential: a long wait is less likely than a short one, but no length is impossible. The probabilities before the
// measurement, and how much a reason adds in the mean, are assumptions.
func Compare(found *Resolved, cfg spec.Config, row *PlanRow, measured float64) *Comparison {
	out := &Comparison{StepS: measured, Ratio: measured / row.StepTimeSec}
	sd := max(math.Log(row.StepTimeHi/row.StepTimeLo)/(2*quantile95), 0.02)
	at := math.Log(out.Ratio)
	out.Quantile = distuv.UnitNormal.CDF(at / sd)
	if row.MFU > 0 {
		out.MFU = row.MFU / out.Ratio
	}
	network, launches := 0.1, 0.05
	if e, err := ExplainerOf(found.Predictor, found.Family); err == nil {
		if p, err := e.Explain(cfg); err == nil && p.Total() > 0 {
			network = max((p.TP+p.CP+p.EP+p.DP+p.Pipeline)/p.Total(), 0.02)
			launches = max(p.Launch/p.Total(), 0.05)
		}
	}
	reasons := []struct {
		name        string
		prior, adds float64 // adds is the mean of the logarithm of the factor
	}{
		{"nothing but the error of the prediction", 0.48, 0},
		{"waiting for data loading", 0.15, 0.25},
		{"a slower network than assumed, or traffic that does not overlap", 0.15, math.Log(1 + network)},
		{"waiting for kernel launches or the host", 0.1, math.Log(1 + 2*launches)},
		{"throttled or slow devices", 0.1, 0.1},
		{"another model, plan or stack than was read here, or a fault", 0.02, 1},
	}
	weights := make([]float64, len(reasons)) // logarithms
	for i, r := range reasons {
		weights[i] = math.Log(r.prior) + slowed(at, sd, r.adds)
	}
	total := floats.LogSumExp(weights)
	for i, r := range reasons {
		out.Causes = append(out.Causes, Cause{r.name, math.Exp(weights[i] - total)})
	}
	slices.SortStableFunc(out.Causes, func(a, b Cause) int { return cmp.Compare(b.Probability, a.Probability) })
	return out
}

// slowed returns the logarithm of the density at x of a normal variable of deviation sd plus an exponential one of mean m,
// 0 = none.
func slowed(x, sd, m float64) float64 {
	if m == 0 {
		return distuv.Normal{Sigma: sd}.LogProb(x)
	}
	m = max(m, sd/8) // below, the sum is normal, and its terms cancel
	return sd*sd/(2*m*m) - x/m + logErfc((sd/m-x/sd)/math.Sqrt2) - math.Log(2*m)
}

// logErfc returns the logarithm of the complementary error function, also where that is 0 in a float64: there by its
// asymptotic expansion (Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, 7.1.23).
func logErfc(z float64) float64 {
	if z < 20 {
		return math.Log(math.Erfc(z))
	}
	return -z*z - math.Log(z*math.Sqrt(math.Pi)) + math.Log1p(-1/(2*z*z)+3/(4*z*z*z*z))
}
