package batches

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// A row has a prediction or a problem, and null in the columns of the other.
func TestPredictions(t *testing.T) {
	fits := planner.Choice{Fits: true, Verdict: "fits", Prediction: spec.Prediction{By: "analytic", AllocatedBytes: 1 << 30, ReservedBytes: 2 << 30, Warnings: []error{errors.New("first"), errors.New("second")}}}
	large := planner.Choice{Verdict: "does not fit", Why: "needs 90 GiB", Prediction: spec.Prediction{By: "hybrid", Warnings: []error{errors.New("third")}}}
	model := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, Heads: 4, FFN: 128, Vocab: 100, SeqLen: 16}
	cost := model.TrainCost()
	b := NewPredictions(3)
	b.Add(&fits, &cost)
	b.Fail(problem.New(422, "", "plan: dp is 0"))
	b.Add(&large, &cost)
	rec := b.Record()
	text := func(of int) string {
		var out []string
		for row := range int(rec.NumRows()) {
			out = append(out, rec.Column(of).ValueStr(row))
		}
		return strings.Join(out, "; ")
	}
	for of, want := range map[int]string{
		0: "0; (null); 0", 5: "0; (null); 0", 6: "true; (null); false", 7: "fits; (null); does not fit", 8: "analytic; (null); hybrid",
		9: "(null); (null); needs 90 GiB", 10: `["first","second"]; (null); ["third"]`, 11: "(null); 422; (null)", 12: "(null); plan: dp is 0; (null)",
		13: "1; (null); 0", 14: "2; (null); 0",
	} {
		if got := text(of); got != want {
			t.Errorf("column %s: %s, want %s", rec.ColumnName(of), got, want)
		}
		if got, want := rec.Column(of).NullN(), strings.Count(want, "(null)"); got != want {
			t.Errorf("column %s: %d nulls, want %d", rec.ColumnName(of), got, want)
		}
	}
	if _, ok := rec.Column(10).(*array.List); !ok {
		t.Errorf("column 10 is %s", rec.Column(10).DataType())
	}
}
