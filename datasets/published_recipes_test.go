package datasets

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Recipes of a source state the stack of its rows by model, device, precision and release, and modules where the row does
// not state what is recomputed.
func TestRecipes(t *testing.T) {
	const head = "row_id,source,model,accelerator,num_gpus,tp,pp,vpp,ep,micro_batch,global_batch,recompute,precision,notes\n"
	for _, c := range []struct {
		row, framework string
		recompute      spec.Recompute
		assumed        bool // that nothing was recomputed
	}{
		{"NeMo/Megatron-Bridge,DeepSeekV3,GB300,256,1,2,8,32,1,4096,,mxfp8,release=26.08", "Megatron-Bridge@26.08", "", false},
		{"NeMo/Megatron-Bridge,DeepSeekV3,GB300,256,1,2,8,32,2,4096,,mxfp8,release=26.04.01", "Megatron-Bridge@26.04.01 recompute=mla_up_proj", "selective", false},
		{"NeMo/Megatron-Bridge,DeepSeekV3,GB300,256,1,2,8,32,2,4096,none,mxfp8,release=26.04.01", "Megatron-Bridge@26.04.01 recompute=mla_up_proj", "", false},
		{"NeMo/Megatron-Bridge,Qwen3_30B_a3B,H100,16,1,1,,16,1,1024,,fp8,release=26.06", "Megatron-Bridge@26.06 ep=none routing=fused", "", false},
		{"NeMo/Megatron-Bridge,Qwen3_30B_a3B,H100,16,1,2,12,8,1,1024,,fp8,release=26.02", "Megatron-Bridge@26.02 dispatch=all-to-all", "", false},
		{"NeMo/Megatron-Bridge,Qwen3_30B_a3B (tokendrop),B200,8,1,1,,8,1,512,,fp8,release=25.09", "Megatron-Bridge@25.09 dispatch=all-to-all routing=graphs", "", false},
		{"NeMo/Megatron-Bridge,GPT OSS 120B,B200,64,1,1,,8,4,1280,,bf16,release=26.04", "Megatron-Bridge@26.04 dispatch=all-to-all recompute=moe_act+layernorm", "selective", false},
		{"NeMo/Megatron-Bridge,Llama3-8B,H100,8,1,1,,,1,128,,fp8,release=26.06", "Megatron-Bridge@26.06", "", true},
		{"NVIDIA/dgxc-benchmarking,DeepSeekV3,GB200,128,2,4,,32,1,1024,,bf16,release 25.05", "NeMo@25.05 recompute=core", "selective", false},
		{"somebody/else,DeepSeekV3,GB200,128,2,4,,32,1,1024,,bf16,release 25.05", "somebody/else@25.05", "", false}, // this source has none
	} {
		rows, bad := readRows(t, "rows.csv", head+"x,"+c.row+"\n", false)
		if len(bad) > 0 || len(rows) != 1 {
			t.Fatalf("%s: %v", c.row, bad)
		}
		got, assumed := rows[0].Measurement.Config, strings.Join(rows[0].Assumed, "; ")
		if got.Framework != c.framework || cmp.Or(got.Plan.Recompute, spec.RecomputeNone) != cmp.Or(c.recompute, spec.RecomputeNone) {
			t.Errorf("%s: %q, recompute %q", c.row, got.Framework, got.Plan.Recompute)
		}
		if strings.Contains(assumed, "taken as none") != c.assumed {
			t.Errorf("%s: %q", c.row, assumed)
		}
	}
}

// TestRecipeShards: a recipe with FSDP shards training states over that many devices of an NVLink domain, unless the row states
// another stage. Other recipes of the source shard the optimizer.
func TestRecipeShards(t *testing.T) {
	const head = "row_id,source,model,accelerator,num_gpus,tp,ep,micro_batch,global_batch,precision,zero_stage,notes,step_time_s,status\n"
	for row, want := range map[string]string{
		"Nemotron_3_Ultra,GB300,256,1,64,1,256,mxfp8,,release=26.08":  "dp=256,tp=1,pp=1,ep=64,mb=1,ga=1,zero=3,shard=64,recompute=selective,precision=mxfp8",
		"Nemotron_3_Ultra,GB200,256,2,64,1,256,mxfp8,,release=26.08":  "dp=128,tp=2,pp=1,ep=64,mb=1,ga=2,zero=3,shard=32,recompute=selective,precision=mxfp8",
		"Nemotron_3_Ultra,GB200,64,1,64,1,256,mxfp8,,release=26.08":   "dp=64,tp=1,pp=1,ep=64,mb=1,ga=4,zero=3,recompute=selective,precision=mxfp8",
		"Nemotron_3_Ultra,GB300,256,1,64,1,256,mxfp8,1,release=26.08": "dp=256,tp=1,pp=1,ep=64,mb=1,ga=1,zero=1,recompute=selective,precision=mxfp8",
		"Nemotron_3_Super,GB300,64,1,64,1,512,mxfp8,,release=26.08":   "dp=64,tp=1,pp=1,ep=64,mb=1,ga=8,zero=1,precision=mxfp8",
	} {
		rows, bad := readRows(t, "rows.csv", head+"x,NeMo/Megatron-Bridge,"+row+",9,ok\n", true)
		if len(bad) > 0 || len(rows) != 1 {
			t.Fatalf("%s: %v", row, bad)
		}
		if got := rows[0].Measurement.Config.Plan.String(); got != want {
			t.Errorf("%s: plan %s, want %s", row, got, want)
		}
		if assumed := strings.Join(rows[0].Assumed, "; "); strings.Contains(assumed, "zero_stage") != strings.Contains(row, "Super") {
			t.Errorf("%s: assumed %q", row, assumed)
		}
		if got := rows[0].Measurement.WrongConfig(); got != strings.Contains(want, "shard=") {
			t.Errorf("%s: not run as recorded: %t", row, got)
		}
	}
}

// TestTimedDevices: rows of a source have what its documents time alone on its devices, others not.
func TestTimedDevices(t *testing.T) {
	const head = "row_id,source,model,accelerator,num_gpus,precision\n"
	for row, want := range map[string]int{"MooreThreads/SimuMax,Llama3-70B,B200,8,bf16": 3 * len(simumaxDevices.products),
		"MooreThreads/SimuMax,Llama3-70B,A100-80GB-SXM,8,bf16": 0, "another/source,Llama3-70B,B200,8,bf16": 0} {
		rows, bad := readRows(t, "rows.csv", head+"x,"+row+"\n", false)
		if len(bad) > 0 || len(rows) != 1 {
			t.Fatalf("%s: %v", row, bad)
		}
		text := rows[0].Measurement.Config.Accelerator.Measured
		var b spec.Microbenchmarks
		if text != "" && (json.Unmarshal([]byte(text), &b) != nil || b.Validate() != nil) || len(b.Rows) != want {
			t.Errorf("%s: %d parts, want %d", row, len(b.Rows), want)
		}
	}
}
