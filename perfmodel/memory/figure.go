package memory

import (
	"cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// figure is a breakdown that an estimator can count: of the fullest stage, of one stage, or of the stage with the
// largest printed figure of a kind. It is a value so that counting allocates nothing.
type figure struct {
	what  int
	stage int          // of oneStage
	kind  stack.Memory // of printed; "" = the kind that the training stack itself reports
}

const (
	fullest = iota
	oneStage
	printed
)

// of returns the figure for a normal plan.
func (f *figure) of(e *Estimator, p *spec.Plan) Breakdown {
	switch f.what {
	case oneStage:
		return e.stage(p, f.stage)
	case printed:
		kind := cmp.Or(f.kind, e.stack.prints)
		return e.most(p, kind).only(kind)
	}
	return e.most(p, stack.Device)
}
