package hybrid

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/shapeless"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"

	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Prior is the distribution of step times before any row of a job is measured: of the constants of the analytic
// model, and of jobs without a shape. It is immutable and safe for concurrent use.
type Prior struct {
	consts    *analytic.Prior
	seen      *domain          // domain of the rows that consts was trained on
	shapeless *shapeless.Prior // of jobs without a shape
	kernels   *gp.Hyper        // of the residuals of sites
	last      *lastFit         // of a Family; nil = none is kept
}

//go:embed prior.json
var priorJSON []byte

// Shipped returns the prior that comes with the program. bench/prior trains it on published measurements. If
// the embedded file does not match that of package analytic, Shipped returns the untrained prior; a test fails
// then.
func Shipped() *Prior { return shippedPrior() }

var shippedPrior = sync.OnceValue(func() *Prior {
	p, err := ReadPrior(priorJSON, analytic.Shipped())
	if err != nil {
		return untrained()
	}
	return p
})

// untrained returns the Prior without training data.
func untrained() *Prior {
	return &Prior{consts: analytic.Untrained(), seen: domainOf(nil), shapeless: &shapeless.Prior{}, kernels: gp.Untaught()}
}

// Train fits the prior to rows of any models, accelerators, frameworks and sources. It ignores rows that are
// not usable or not covered. The error wraps perfmodel.ErrTooFewPoints if no row is left, or is that of ctx.
func Train(ctx context.Context, rows []spec.Measurement) (*Prior, error) {
	shaped, others := byShape(rows)
	jobs, err := shapeless.Train(ctx, others)
	if err != nil {
		return nil, err
	}
	mem, err := memory.Calibrate(ctx, rows)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	consts, used, left, err := analytic.Train(ctx, shaped, mem)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	at := pointsOf(used)
	var tasks []gp.Task
	for _, l := range left {
		t := gp.Task{Off: l.Errors, Trend: l.Trend}
		for _, i := range l.Rows {
			t.At = append(t.At, at[i])
		}
		tasks = append(tasks, t)
	}
	kernels, err := gp.Learn(ctx, tasks)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	return &Prior{consts: consts, seen: domainOf(at), shapeless: jobs, kernels: kernels}, nil
}

// pointsOf returns the points of rows.
func pointsOf(rows []spec.Measurement) []gp.Point {
	at := make([]gp.Point, len(rows))
	for i := range at {
		at[i] = gp.PointOf(&rows[i].Config)
	}
	return at
}

// Constants returns the prior of the constants of the analytic model.
func (p *Prior) Constants() *analytic.Prior { return p.consts }

// Without returns p as if its training data had no jobs without a shape for which drop returns true. The
// constants of the analytic model do not change.
func (p *Prior) Without(drop func(spec.Key) bool) *Prior {
	out := *p
	out.shapeless = p.shapeless.Without(func(model, site string) bool {
		accelerator, _, _ := strings.Cut(site, "/")
		return drop(spec.Key{Model: model, Accelerator: accelerator})
	})
	return &out
}

// Predict implements perfmodel.Predictor.
func (p *Prior) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	return p.unfitted().Predict(ctx, c)
}

// Memory implements memory.Predictor, with the prior's calibration.
func (p *Prior) Memory(c spec.Config) (memory.Estimator, error) { return p.consts.Memory.For(c) }

// unfitted returns the model without rows.
func (p *Prior) unfitted() *Model { return p.hybrid(p.uncalibrated()) }

// priorRecord is the stored form of a Prior, without its constants.
type priorRecord struct {
	Hash    string           `json:"hash"` // of the training rows, as in the constants
	Seen    *domain          `json:"seen"`
	Opaque  *shapeless.Prior `json:"shapeless"`
	Kernels *gp.Hyper        `json:"kernels"`
}

// MarshalJSON implements json.Marshaler. It omits the constants, which have their own file.
func (p *Prior) MarshalJSON() ([]byte, error) {
	return json.Marshal(priorRecord{Hash: p.consts.Training.Hash, Seen: p.seen, Opaque: p.shapeless, Kernels: p.kernels})
}

// ReadPrior reads what MarshalJSON wrote for a prior with these constants. It returns an error for a prior
// trained on other rows.
func ReadPrior(b []byte, consts *analytic.Prior) (*Prior, error) {
	var r priorRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("hybrid: prior: %w", err)
	}
	if r.Seen == nil || r.Opaque == nil || r.Kernels == nil || !r.Kernels.Mean.Valid() || r.Hash != consts.Training.Hash {
		return nil, fmt.Errorf("hybrid: prior of rows %q does not match constants of rows %q: train it again", r.Hash, consts.Training.Hash)
	}
	return &Prior{consts: consts, seen: r.Seen, shapeless: r.Opaque, kernels: r.Kernels}, nil
}
