package datasets

import (
	"strings"
	"testing"
)

// TestSequenceParallelColumn: the column sp comes before the habits of a training stack.
func TestSequenceParallelColumn(t *testing.T) {
	for sp, want := range map[string]bool{"": true, "1": true, "TRUE": true, "0": false, "false": false} {
		rows, bad := readRows(t, "my.csv", "row_id,framework,model,accelerator,num_gpus,tp,recompute,sp\nx,Megatron-LM@2023,Llama3-8B,h100,8,2,selective,"+sp+"\n", false)
		if len(bad) != 0 || len(rows) != 1 || rows[0].Measurement.Config.Plan.SequenceParallel != want {
			t.Errorf("sp=%q: %v %v, want %t", sp, rows, bad, want)
		}
	}
	if _, bad := readRows(t, "my.csv", "row_id,model,accelerator,num_gpus,tp,sp\nx,Llama3-8B,h100,8,2,yes\n", false); len(bad) != 1 || !strings.Contains(bad[0], `sp "yes": is not 0, 1, false or true`) {
		t.Errorf("sp=yes: %v", bad)
	}
}
