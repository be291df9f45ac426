package hybrid

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// lastFit keeps the last calibration: a campaign fits its rows, and then asks what other rows would gain.
type lastFit struct {
	mu    sync.Mutex
	rows  []spec.Measurement // in canonical order
	model *Model
}

// get returns the calibration to rows, computed by fit unless it is the last one. Rows with repeats are always fitted: their
// order matters to which of them are copies.
func (l *lastFit) get(rows []spec.Measurement, fit func() (*Model, error)) (*Model, error) {
	merged := perfmodel.MergeRepeats(rows)
	if len(merged) < len(rows) {
		return fit()
	}
	l.mu.Lock()
	model, same := l.model, l.model != nil && reflect.DeepEqual(l.rows, merged)
	l.mu.Unlock()
	if !same {
		var err error
		if model, err = fit(); err != nil {
			return nil, err
		}
		for i := range merged { // the caller may change its rows
			m := &merged[i]
			m.StepSec, m.PhaseSec, m.Env = slices.Clone(m.StepSec), maps.Clone(m.PhaseSec), maps.Clone(m.Env)
		}
		l.mu.Lock()
		l.rows, l.model = merged, model
		l.mu.Unlock()
	}
	out, base := *model, *model.base // their memory is calibrated afterwards
	out.base = &base
	return &out, nil
}
