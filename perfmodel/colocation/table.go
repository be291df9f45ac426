package colocation

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Kind identifies a job of a pair: model, tokens per sample and plan, and the accelerator of both jobs. The
// number of devices follows from the plan. The placement on nodes is ignored.
type Kind struct {
	spec.Key
	Seq  int
	Plan spec.Plan // normal
}

// KindOf returns the kind of a job with configuration c.
func KindOf(c spec.Config) Kind { return Kind{c.Key(), c.Seq(), c.Plan.Normal()} }

// String names model, accelerator and plan.
func (k Kind) String() string { return fmt.Sprintf("%s, plan %s", k.Key, k.Plan) }

// Table holds measured pairs. The zero value is empty. It is immutable and safe
// for concurrent use.
type Table struct {
	rates map[[2]Kind]float64 // samples/s of the first beside the second
}

// New returns a table of rows. A later row replaces an earlier one of the same kinds.
func New(rows []spec.Colocation) *Table {
	t := &Table{rates: make(map[[2]Kind]float64, 2*len(rows))}
	for i := range rows {
		r := &rows[i]
		a, b := KindOf(r.A), KindOf(r.B)
		t.rates[[2]Kind{a, b}] = r.RateA
		t.rates[[2]Kind{b, a}] = r.RateB
	}
	return t
}

// Beside returns the throughput of a, in samples/s, while b runs on the same devices. The error wraps
// perfmodel.ErrNotCovered for a pair that was not measured.
func (t *Table) Beside(a, b spec.Config) (float64, error) {
	ka, kb := KindOf(a), KindOf(b)
	if rate, ok := t.rates[[2]Kind{ka, kb}]; ok {
		return rate, nil
	}
	return 0, notMeasured(ka, kb)
}

func notMeasured(a, b Kind) error {
	return fmt.Errorf("colocation: %s beside %s, plan %s: not measured: %w", a, b.Model, b.Plan, perfmodel.ErrNotCovered)
}
