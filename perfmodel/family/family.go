package family

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// families is filled by the init functions of this package's files.
var families = named.NewSet[perfmodel.Family]("family", "performance model")

// register adds f. It panics on a family without a name and on a name taken:
// both are mistakes in this package.
func register(f perfmodel.Family) { families.Add(f.Name, f) }

// All returns every family, by name.
func All() []perfmodel.Family { return families.All() }

// Names returns the name of every family, sorted.
func Names() []string { return families.Names() }

// Lookup returns the family called name. The error for an unknown one lists
// the names there are, nearest first.
func Lookup(name string) (perfmodel.Family, error) { return families.Get(name) }

// checkDegrees returns an error wrapping perfmodel.ErrNotCovered for a plan that
// no machine runs (spec.Plan.CheckBounds).
func checkDegrees(p *spec.Plan) error {
	if err := p.CheckBounds(); err != nil {
		return fmt.Errorf("%w: %w", err, perfmodel.ErrNotCovered)
	}
	return nil
}
