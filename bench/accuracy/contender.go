package accuracy

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Prior is a model trained on rows of other jobs. It predicts jobs without rows.
type Prior interface {
	perfmodel.Predictor
	// Condition returns the model fitted to further rows, of any jobs.
	Condition(ctx context.Context, rows []spec.Measurement) (perfmodel.Fitted, error)
	// Family fits single jobs, starting from the prior.
	Family() perfmodel.Family
	// Without returns the Prior without training on the jobs for which drop returns
	// true; it applies to jobs without layers.
	Without(drop func(spec.Key) bool) Prior
}

// Contender is a family as the protocols use it.
type Contender struct {
	perfmodel.Family
	// Train trains a Prior; nil for families that fit every job separately.
	Train func(ctx context.Context, rows []spec.Measurement) (Prior, error)
}

// Contenders returns every registered family, by name.
func Contenders() []Contender {
	var out []Contender
	for _, f := range family.All() {
		out = append(out, newContender(f))
	}
	return out
}

// Lookup returns the contender with a name. The error for an unknown one lists all
// names.
func Lookup(name string) (Contender, error) {
	f, err := family.Lookup(name)
	if err != nil {
		return Contender{}, err
	}
	return newContender(f), nil
}

func newContender(f perfmodel.Family) Contender {
	return Contender{Family: f, Train: trainerOf(f.Name)}
}

// unable is the reason that a family has no result under a protocol.
type unable string

func (u unable) Error() string { return string(u) }

func unablef(format string, args ...any) error { return unable(fmt.Sprintf(format, args...)) }
