package datasets

import (
	"slices"
	"strings"
	"testing"
)

// TestRowsAdapterInName: a method of fine-tuning behind a known name is an adapter of the usual rank.
func TestRowsAdapterInName(t *testing.T) {
	rows, bad := readRows(t, "my.csv", "row_id,model,accelerator,num_gpus,adapter,layers\n"+
		"a,Llama2 70B LoRA,h100x8,8,,\nb,Llama2-70B-QLoRA,DGX H100,8,qlora:64,\nc,Llama 3 8b LoRA,V100,8,,4\nd,MyNet LoRA,h100,8,,\n", false)
	if len(bad) != 0 || len(rows) != 4 {
		t.Fatal(bad)
	}
	for i, want := range []string{"Llama2-70B (lora:16)", "Llama2-70B (qlora:64)", "Llama 3 8b (layers=4) (lora:16)", "MyNet LoRA"} {
		if c := rows[i].Measurement.Config; c.Model.Name != want || i < 2 && c.Accelerator.Name != "H100-80GB-SXM" {
			t.Errorf("%s: %s on %s, want %s", rows[i].ID, c.Model.Name, c.Accelerator.Name, want)
		}
	}
	if notes := strings.Join(rows[2].Assumed, "; "); !strings.Contains(notes, "rank of the adapters not recorded, taken as 16") || !strings.Contains(notes, "accelerator V100 taken as V100-SXM2-16GB, not V100-SXM2-32GB") {
		t.Errorf("assumed: %s", notes)
	}
}

// TestRowsEightBitWeights: files of some rounds of MLPerf say that frozen weights are in fp8; adapters of all rounds and stacks
// have dropout. Rows that train all weights, and rows that state parts are as they are.
func TestRowsEightBitWeights(t *testing.T) {
	head := "row_id,source,framework,stack,adapter,notes,model,accelerator,num_gpus,tp,recompute,zero_stage,precision,seq_len,global_batch,step_time_s,status\n"
	for cells, want := range map[string]string{
		"mlcommons/training_results_v4.0,NeMo,,,LoRA rank 16":                 "adapters=dropout weights=fp8-once",
		"mlcommons/training_results_v4.0,NeMo,,lora:16,":                      "adapters=dropout weights=fp8-once",
		"mlcommons/training_results_v4.0,NeMo,,,task=LoRA":                    "adapters=dropout weights=fp8-once",
		"mlcommons/training_results_v4.0,NeMo@24.09,,lora:16,":                "adapters=dropout weights=fp8-once",
		"mlcommons/training_results_v4.0,NVIDIA NeMo,,lora:16,":               "adapters=dropout weights=fp8-once",
		"mlcommons/training_results_v4.0,NeMo,,,":                             "",
		"mlcommons/training_results_v4.0,NeMo,,none,":                         "",
		"mlcommons/training_results_v4.0,NeMo,weights=16bit,lora:16,":         "weights=16bit",
		"mlcommons/training_results_v4.0,Megatron-LM,,lora:16,":               "adapters=dropout",
		"mlcommons/training_results_v4.0,,,lora:16,":                          "adapters=dropout",
		"mlcommons/training_results_v4.1,,,lora:16,":                          "adapters=dropout",
		"mlcommons/training_results_v4.1,NeMo,,,LoRA rank 16":                 "adapters=dropout weights=fp8-once",
		"mlcommons/training_results_v4.1,Megatron-LM,,,LoRA rank 16":          "adapters=dropout",
		"mlcommons/training_results_v5.1,NeMo,,lora:16,":                      "adapters=dropout",
		"mlcommons/training_results_v5.1,Megatron-LM,,lora:16,":               "adapters=dropout weights=fp8-once",
		"mlcommons/training_results_v5.0,Megatron-LM,,lora:16,":               "adapters=dropout weights=fp8-once",
		"mlcommons/training_results_v5.0,NeMo,,lora:16,":                      "adapters=dropout",
		"mlcommons/training_results_v4.0,NeMo,launch=eager,,LoRA rank 16 fp8": "launch=eager",
	} {
		for _, outcome := range []string{"1,ok", ",oom"} { // of no effect
			rows, bad := readRows(t, "my.csv", head+"x,"+cells+",Llama3-8B,h100,8,4,none,1,fp8,8192,8,"+outcome+"\n", true)
			if len(bad) != 0 || len(rows) != 1 {
				t.Errorf("%s: %v", cells, bad)
				continue
			}
			name, parts, _ := strings.Cut(rows[0].Measurement.Config.Framework, " ")
			if source, given, _ := strings.Cut(cells, ","); strings.HasPrefix(given, ",") && name != source {
				t.Errorf("%s: stack %q, want that of source %q alone", cells, name, source)
			}
			if parts != want {
				t.Errorf("%s %s: stack %q, want parts %q", cells, outcome, rows[0].Measurement.Config.Framework, want)
			}
		}
	}
}

// TestRowsNotedStack: what notes say of the training stack, and releases that only documents state. Rows that state a
// release or parts are as they are.
func TestRowsNotedStack(t *testing.T) {
	head := "row_id,source,framework,stack,notes,model,accelerator,num_gpus,tp,recompute,zero_stage,precision,seq_len,global_batch,step_time_s,status\n"
	const xtuner = " overlap=none routing=fused"
	for cells, want := range map[string]string{
		"pytorch/torchtitan,,,FSDP2; torch.compile":                                    "torchtitan",
		"pytorch/torchtitan,,,FSDP2; eager":                                            "torchtitan launch=eager",
		"pytorch/torchtitan,,,2D + AsyncTP; torch.compile":                             "torchtitan tp=async",
		"pytorch/torchtitan,,,async TP; torch.compile":                                 "torchtitan tp=async",
		"pytorch/torchtitan,,launch=graphs,eager":                                      "torchtitan launch=graphs",
		"foundation-model-stack/fms-fsdp,,,HSDP: sharded inside a node":                "FSDP@2024 launch=compiled zero=hsdp",
		"foundation-model-stack/fms-fsdp,,,FSDP full shard":                            "FSDP@2024 launch=compiled",
		"Oneflow-Inc/libai,megatron,,":                                                 "Megatron-LM@2022-03",
		"Oneflow-Inc/libai,Megatron-LM@2021,,":                                         "Megatron-LM@2021",
		"Oneflow-Inc/libai,OneFlow LiBai,,":                                            "LiBai",
		"InternLM/xtuner,Megatron-LM,,\"config: tp2, ep8\"":                            "Megatron Core@2025-04" + xtuner,
		"InternLM/xtuner,Megatron-LM,,\"config: tp2, deepep\"":                         "Megatron Core@2025-04" + xtuner + " dispatch=per-node",
		"InternLM/xtuner,Megatron-LM,,\"config: tp2, recompute=moe\"":                  "Megatron Core@2025-04" + xtuner + " recompute=moe+layernorm",
		"InternLM/xtuner,Megatron-LM,,\"config: tp2, recompute=select, zero overlap\"": "Megatron Core@2025-04 overlap=backward routing=fused recompute=moe_act+layernorm",
		"mine,torchtitan,,eager":                                                       "torchtitan",
	} {
		rows, bad := readRows(t, "my.csv", head+"x,"+cells+",Llama3-8B,h100,8,4,none,1,bf16,8192,8,1,ok\n", true)
		if len(bad) != 0 || len(rows) != 1 {
			t.Errorf("%s: %v", cells, bad)
			continue
		}
		got := strings.Fields(rows[0].Measurement.Config.Framework)
		wanted := strings.Fields(want)
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: stack %q, want %q", cells, rows[0].Measurement.Config.Framework, want)
		}
	}
}
