package family

import (
	"sync"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/family/hybrid"
	"github.com/pacer-ml/pacer/perfmodel/family/optimus"
	"github.com/pacer-ml/pacer/perfmodel/family/pollux"
	"github.com/pacer-ml/pacer/perfmodel/family/rubick"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Default is the name of the family that is used where none is named.
const Default = "hybrid"

// table returns all families. It is built on first use, because reading the trained priors takes milliseconds.
var table = sync.OnceValue(func() *named.Set[perfmodel.Family] {
	set := named.NewSet[perfmodel.Family]("family", "performance model")
	for _, f := range []perfmodel.Family{
		analytic.Family,
		hybrid.Shipped().Family(),
		optimus.Family,
		pollux.Family,
		rubick.Family,
		pollux.SiaFamily,
	} {
		set.Add(f.Name, f)
	}
	return set
})

// All returns every family, sorted by name.
func All() []perfmodel.Family { return table().All() }

// Names returns the name of every family, sorted.
func Names() []string { return table().Names() }

// Lookup returns the family called name. The error for an unknown name lists all names, nearest first.
func Lookup(name string) (perfmodel.Family, error) { return table().Get(name) }
