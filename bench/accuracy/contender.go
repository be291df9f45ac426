package accuracy

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Prior is the knowledge of a family from rows of other jobs. It predicts jobs
// without a row of their own.
type Prior interface {
	perfmodel.Predictor
	// Condition returns the model fitted to further rows, of any jobs.
	Condition(ctx context.Context, rows []spec.Measurement) (perfmodel.Fitted, error)
	// Family fits single jobs, starting from what was learnt.
	Family() perfmodel.Family
	// Without is the Prior as if the jobs without layers that drop names had not
	// been learnt from.
	Without(drop func(spec.Key) bool) Prior
}

// Contender is a family as the protocols use it.
type Contender struct {
	perfmodel.Family
	// Train learns a Prior; nil for families that transfer nothing from one job to
	// another.
	Train func(ctx context.Context, rows []spec.Measurement) (Prior, error)
}

// Contenders returns every family that is registered, by name.
func Contenders() []Contender {
	var out []Contender
	for _, f := range family.All() {
		out = append(out, newContender(f))
	}
	return out
}

// Lookup returns the contender with a name; the error of an unknown one lists
// those there are.
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

// unable is why a family has no answer to a protocol.
type unable string

func (u unable) Error() string { return string(u) }

func unablef(format string, args ...any) error { return unable(fmt.Sprintf(format, args...)) }
