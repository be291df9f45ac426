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

// Prior is the distribution of step times before any row of a job is measured: of
// the constants of the analytic model, and of jobs without a shape. It is
// immutable and safe for concurrent use.
type Prior struct {
	consts    *analytic.Prior
	seen      *domain          // of the rows that consts was trained on
	shapeless *shapeless.Prior // of jobs without a shape
}

//go:embed prior.json
var priorJSON []byte

// Shipped returns the prior that comes with the program, trained by bench/prior
// on published measurements. If the embedded file does not match that of package
// analytic, it is the untrained prior; a test fails for such a program.
func Shipped() *Prior { return shippedPrior() }

var shippedPrior = sync.OnceValue(func() *Prior {
	p, err := ReadPrior(priorJSON, analytic.Shipped())
	if err != nil {
		return untrained()
	}
	return p
})

// untrained is the Prior without training data.
func untrained() *Prior {
	return &Prior{consts: analytic.Untrained(), seen: domainOf(nil), shapeless: &shapeless.Prior{}}
}

// Train fits the analytic model's constants to rows of any models,
// accelerators, frameworks and sources. Rows that are not usable or not covered
// are left out. The error wraps perfmodel.ErrTooFewPoints when none is left, and is
// ctx's when that ends.
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
	consts, used, err := analytic.Train(ctx, shaped, mem)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	return &Prior{consts: consts, seen: domainOf(pointsOf(used)), shapeless: jobs}, nil
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

// Without returns p as if it had not been trained on the jobs without a shape
// for which drop returns true. The constants of the physics stay.
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

// Memory implements memory.Predictor, without measured peaks of the job.
func (p *Prior) Memory(c spec.Config) (memory.Estimator, error) { return p.consts.Memory.For(c) }

// unfitted returns the model without rows.
func (p *Prior) unfitted() *Model { return p.hybrid(p.uncalibrated()) }

// priorRecord is a Prior on disk, its constants apart.
type priorRecord struct {
	Hash   string           `json:"hash"` // of the training rows; that of its constants is equal
	Seen   *domain          `json:"seen"`
	Opaque *shapeless.Prior `json:"shapeless"`
}

// MarshalJSON implements json.Marshaler. It leaves out the constants, which have
// a file of their own.
func (p *Prior) MarshalJSON() ([]byte, error) {
	return json.Marshal(priorRecord{Hash: p.consts.Training.Hash, Seen: p.seen, Opaque: p.shapeless})
}

// ReadPrior reads what MarshalJSON wrote of a prior with these constants. It
// refuses a prior trained on other rows.
func ReadPrior(b []byte, consts *analytic.Prior) (*Prior, error) {
	var r priorRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("hybrid: prior: %w", err)
	}
	if r.Seen == nil || r.Opaque == nil || r.Hash != consts.Training.Hash {
		return nil, fmt.Errorf("hybrid: prior of rows %q is not one of constants of rows %q: train it again", r.Hash, consts.Training.Hash)
	}
	return &Prior{consts: consts, seen: r.Seen, shapeless: r.Opaque}, nil
}
