package launch

import (
	"testing"

	"github.com/goccy/go-yaml"
)

// clusterKeys are the fields of Accelerate's ClusterConfig, which refuses other keys.
//
// Source: github.com/huggingface/accelerate, src/accelerate/commands/config/config_args.py
var clusterKeys = map[string]bool{"compute_environment": true, "distributed_type": true, "mixed_precision": true, "use_cpu": true, "debug": true,
	"num_processes": true, "machine_rank": true, "num_machines": true, "gpu_ids": true, "main_process_ip": true, "main_process_port": true, "rdzv_backend": true,
	"same_network": true, "main_training_function": true, "enable_cpu_affinity": true, "fp8_config": true, "deepspeed_config": true, "fsdp_config": true,
	"megatron_lm_config": true, "parallelism_config": true, "dynamo_config": true, "downcast_bf16": true}

// The file is YAML with keys that Accelerate knows, and of the kind that the plan needs.
func TestAccelerateFile(t *testing.T) {
	for plan, want := range map[string]map[string]any{
		"dp=1":                                {"distributed_type": "NO", "num_processes": uint64(1)},
		"dp=16,ga=4":                          {"distributed_type": "MULTI_GPU", "num_machines": uint64(2), "num_processes": uint64(16)},
		"dp=16,zero=1,ga=4":                   {"distributed_type": "DEEPSPEED", "num_processes": uint64(16)},
		"dp=16,zero=3,offload=optimizer":      {"distributed_type": "DEEPSPEED"},
		"dp=8,tp=2,zero=3,recompute=full":     {"distributed_type": "FSDP", "num_processes": uint64(16)},
		"dp=16,zero=2,shard=8,precision=fp16": {"distributed_type": "FSDP", "mixed_precision": "fp16"},
		"dp=16,precision=fp32":                {"distributed_type": "MULTI_GPU", "mixed_precision": "no"},
	} {
		shape := "8+8"
		if plan == "dp=1" {
			shape = "1"
		}
		s, err := emit(t, "accelerate", config(t, "Llama3-8B", "H100", shape, plan))
		if err != nil {
			t.Error(plan, err)
			continue
		}
		var got map[string]any
		if err := yaml.Unmarshal([]byte(s.Text), &got); err != nil {
			t.Errorf("%s: %v\n%s", plan, err, s.Text)
		}
		for key := range got {
			if !clusterKeys[key] {
				t.Errorf("%s: key %s is not known", plan, key)
			}
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s: %s is %v, want %v\n%s", plan, key, got[key], value, s.Text)
			}
		}
	}
}
