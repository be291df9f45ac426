package datasets

import (
	"strings"
	"testing"
)

// TestPublishedAlone: rows of one rank are read as such, with the plan of all ranks; a stage that the plan lacks is refused.
func TestPublishedAlone(t *testing.T) {
	const head = "row_id,model,accelerator,num_gpus,tp,pp,dp,micro_batch,grad_accum,step_time_s,alone_stage\n"
	for cell, want := range map[string]int{"": 0, "0": 0, "1": 1, "2": 2, "3": -1, "x": -1} {
		text := head + "a,GPT2-1.5B,H100-SXM,16,2,2,4,1,8,1.5," + cell + "\n"
		n := 0
		for row, err := range PublishedRows(t.Context(), "rows.csv", strings.NewReader(text), nil, true) {
			n++
			c := row.Measurement.Config
			switch {
			case want < 0:
				if err == nil || !strings.Contains(err.Error(), "alone_stage") {
					t.Errorf("%q: %v, want an error of alone_stage", cell, err)
				}
			case err != nil || c.AloneStage != want || c.Alone() != (want > 0) || c.Plan.Devices() != 16:
				t.Errorf("%q: stage %d, %v; want %d", cell, c.AloneStage, err, want)
			}
			if len(row.Header) > 0 {
				t.Errorf("%q", row.Header)
			}
		}
		if n != 1 {
			t.Errorf("%q: %d rows", cell, n)
		}
	}
}
