package datasets

import (
	"strings"
	"testing"
)

// TestRowsEightBitWeights: MLPerf 4.0's files say that NeMo's frozen weights are in fp8. Rows of other rounds and stacks,
// rows that train all weights, and rows that state parts are as they are.
func TestRowsEightBitWeights(t *testing.T) {
	head := "row_id,source,framework,stack,adapter,notes,model,accelerator,num_gpus,tp,recompute,zero_stage,precision,seq_len,global_batch,step_time_s,status\n"
	for cells, want := range map[string]string{
		"mlcommons/training_results_v4.0,NeMo,,,LoRA rank 16":                 "weights=fp8-once",
		"mlcommons/training_results_v4.0,NeMo,,lora:16,":                      "weights=fp8-once",
		"mlcommons/training_results_v4.0,NeMo,,,task=LoRA":                    "weights=fp8-once",
		"mlcommons/training_results_v4.0,NeMo@24.09,,lora:16,":                "weights=fp8-once",
		"mlcommons/training_results_v4.0,NVIDIA NeMo,,lora:16,":               "weights=fp8-once",
		"mlcommons/training_results_v4.0,NeMo,,,":                             "",
		"mlcommons/training_results_v4.0,NeMo,,none,":                         "",
		"mlcommons/training_results_v4.0,NeMo,weights=16bit,lora:16,":         "weights=16bit",
		"mlcommons/training_results_v4.0,Megatron-LM,,lora:16,":               "",
		"mlcommons/training_results_v4.0,,,lora:16,":                          "",
		"mlcommons/training_results_v4.1,NeMo,,,LoRA rank 16":                 "",
		"mlcommons/training_results_v5.1,NeMo,,lora:16,":                      "",
		"mlcommons/training_results_v4.0,NeMo,launch=eager,,LoRA rank 16 fp8": "launch=eager",
	} {
		for _, outcome := range []string{"1,ok", ",oom"} { // of no effect
			rows, bad := readRows(t, "my.csv", head+"x,"+cells+",Llama3-8B,h100,8,4,none,1,fp8,8192,8,"+outcome+"\n", true)
			if len(bad) != 0 || len(rows) != 1 {
				t.Errorf("%s: %v", cells, bad)
				continue
			}
			_, parts, _ := strings.Cut(rows[0].Measurement.Config.Framework, " ")
			if parts != want {
				t.Errorf("%s %s: stack %q, want parts %q", cells, outcome, rows[0].Measurement.Config.Framework, want)
			}
		}
	}
}
