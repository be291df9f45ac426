package measured

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrNotMeasured means that a Config has no measurement. Errors that wrap it name
// the configuration.
var ErrNotMeasured = errors.New("not measured")

// key identifies a configuration in a look-up: model and accelerator by name, tokens per sample, plan and
// shape. The other figures of model, accelerator and links are ignored, since they follow from the names. So is
// the training stack (Config.Framework), since callers seldom set it.
type key struct {
	spec.Key
	seq   int
	plan  spec.Plan
	shape spec.Shape
}

func keyOf(c spec.Config) key {
	return key{Key: c.Key(), seq: c.Seq(), plan: c.Plan.Normal(), shape: c.Shape}
}

// entry is one measured configuration with its median step time.
type entry struct {
	config  spec.Config
	stepSec float64
}

// Table predicts the median measured step time of exactly the given
// configuration. It is immutable and safe for concurrent use.
type Table struct {
	byKey   map[key]int
	entries []entry // sorted by key, so that Configs has one order
}

// New returns the table of the rows that are OK, have a step time, ran the configuration they record (see
// spec.Measurement.WrongConfig), and are neither impossible, nor quarantined, nor of one rank alone. Other rows in doubt are included. The table pools the step times
// of rows with one configuration. The order of rows does not matter; New copies their step times.
func New(rows []spec.Measurement) *Table {
	pooled := map[key]*spec.Measurement{}
	var order []key
	for _, m := range rows {
		if m.Outcome != spec.OK || !(m.MedianStepSec() > 0) || m.WrongConfig() || m.Quarantined() || m.Config.Alone() || m.Impossible() != "" {
			continue
		}
		k := keyOf(m.Config)
		if p, ok := pooled[k]; ok {
			p.StepSec = append(p.StepSec, m.StepSec...)
			if perfmodel.CompareConfigs(m.Config, p.Config) < 0 {
				p.Config = m.Config
			}
			continue
		}
		m.StepSec = slices.Clone(m.StepSec)
		pooled[k] = &m
		order = append(order, k)
	}
	slices.SortFunc(order, compareKeys)
	t := &Table{byKey: make(map[key]int, len(order))}
	for i, k := range order {
		t.byKey[k] = i
		t.entries = append(t.entries, entry{config: pooled[k].Config, stepSec: pooled[k].MedianStepSec()})
	}
	return t
}

func compareKeys(a, b key) int {
	return cmp.Or(
		cmp.Compare(a.Model, b.Model), cmp.Compare(a.Accelerator, b.Accelerator),
		cmp.Compare(a.seq, b.seq), cmp.Compare(a.plan.String(), b.plan.String()),
		cmp.Compare(a.shape.Total(), b.shape.Total()), cmp.Compare(a.shape.Devices, b.shape.Devices),
		cmp.Compare(a.shape.CPUs, b.shape.CPUs), cmp.Compare(a.shape.HostBytes, b.shape.HostBytes))
}

// Len returns the number of distinct configurations.
func (t *Table) Len() int { return len(t.entries) }

// Configs returns the measured configurations, in a fixed order. The slice belongs
// to the caller.
func (t *Table) Configs() []spec.Config {
	out := make([]spec.Config, len(t.entries))
	for i, e := range t.entries {
		out[i] = e.config
	}
	return out
}

// Predict returns the measured throughput of c, or an error that wraps
// ErrNotMeasured.
func (t *Table) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	i, ok := t.byKey[keyOf(c)]
	if !ok || c.Alone() {
		return spec.Prediction{}, notMeasured(c)
	}
	return t.entries[i].prediction(c), nil
}

func (e entry) prediction(c spec.Config) spec.Prediction {
	return spec.Prediction{Throughput: float64(c.Plan.GlobalBatch()) / e.stepSec, By: spec.ByTable}
}

func notMeasured(c spec.Config) error {
	return fmt.Errorf("measured: %s, plan %s on %s: %w", c.Key(), c.Plan, c.Shape.Devices, ErrNotMeasured)
}
