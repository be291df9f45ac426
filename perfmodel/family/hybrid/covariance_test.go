package hybrid

import (
	"context"
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// TestLogCovariance: the variances are those of the intervals, the matrix is positive semi-definite, and plans
// with a similar split of their time have correlated errors.
func TestLogCovariance(t *testing.T) {
	rows := hostRows()
	fitted, err := Shipped().Condition(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	type correlated interface {
		perfmodel.Predictor
		LogCovariance(context.Context, []spec.Config) (*mat.SymDense, error)
	}
	for name, p := range map[string]correlated{"analytic": &analytic.Model{}, "hybrid": fitted.(*Model)} {
		var cs []spec.Config
		for _, r := range rows {
			cs = append(cs, r.Config)
		}
		cov, err := p.LogCovariance(context.Background(), cs)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cs {
			pred, err := p.Predict(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			sd := math.Log(pred.Hi/pred.Lo) / (2 * stats.Normal90)
			if v := cov.At(i, i); v < sd*sd*(1-1e-9) || v > sd*sd*1.2 {
				t.Errorf("%s: %s has a variance of %g, its interval says %g", name, c.Plan, v, sd*sd)
			}
		}
		var eig mat.EigenSym
		if !eig.Factorize(cov, false) || eig.Values(nil)[0] < -1e-9 {
			t.Errorf("%s: eigenvalues %v", name, eig.Values(nil))
		}
		like, unlike := correlation(cov, 0, 2), correlation(cov, 0, 1) // both without offload; one without and one with
		if !(like > unlike) || !(like > 0.3) {
			t.Errorf("%s: correlation %g of plans alike, %g of others", name, like, unlike)
		}
	}
	opaque := rows[0].Config
	opaque.Model = spec.Model{Name: "o", Kind: spec.Opaque, FLOPsPerSample: 1e9}
	if _, err := (&analytic.Model{}).LogCovariance(context.Background(), []spec.Config{opaque}); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("a model without a shape: %v", err)
	}
}

func correlation(m *mat.SymDense, i, j int) float64 {
	return m.At(i, j) / math.Sqrt(m.At(i, i)*m.At(j, j))
}
