package store

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// aloneRow is a row of one rank of a stage.
func aloneRow(stage int) spec.Measurement {
	m := frozen(0)
	m.Config.Plan.PP, m.Config.AloneStage = 4, stage
	return m
}

// TestAloneRows: the rows of the stages of one plan, and that of the whole plan, are different rows; a stage that the plan
// lacks is refused.
func TestAloneRows(t *testing.T) {
	ctx := context.Background()
	db := openTest(t, t.TempDir(), Options{})
	rows := []spec.Measurement{aloneRow(0), aloneRow(1), aloneRow(2), aloneRow(4)}
	for range 2 {
		if err := db.Put(ctx, rows...); err != nil {
			t.Fatal(err)
		}
	}
	got := map[int]spec.Measurement{}
	for _, m := range collect(t, db, Filter{}) {
		got[m.Config.AloneStage] = m
	}
	if len(got) != len(rows) {
		t.Errorf("%d rows, want %d", len(got), len(rows))
	}
	for _, m := range rows {
		if d := cmp.Diff(m, got[m.Config.AloneStage]); d != "" {
			t.Error(d)
		}
	}
	if err := db.Put(ctx, aloneRow(5)); err == nil || !strings.Contains(err.Error(), "alone_stage=5 is not in [0, pp=4]") {
		t.Errorf("stage 5 of 4: %v", err)
	}
}
