package colocation

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Kind is what a job is known by beside another: what it trains and how. On how
// many devices follows from the plan; which nodes they are on is not told apart.
type Kind struct {
	spec.Key // its accelerator is that of both
	Seq      int
	Plan     spec.Plan // normal
}

// KindOf returns the kind of a job that runs as c.
func KindOf(c spec.Config) Kind { return Kind{c.Key(), c.Seq(), c.Plan.Normal()} }

// String names model, accelerator and plan.
func (k Kind) String() string { return fmt.Sprintf("%s, plan %s", k.Key, k.Plan) }

// Table is what was measured. The zero value knows nothing; it is safe for
// concurrent use once it is filled.
type Table struct {
	rates map[[2]Kind]float64 // samples/s of the first beside the second
}

// New returns the table of rows. Of two rows of the same jobs the later one
// counts.
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

// Beside returns the throughput of a while b runs on the same devices, in
// samples/s; an error that wraps perfmodel.ErrNotCovered if that was not measured.
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
