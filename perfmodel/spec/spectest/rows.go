package spectest

import (
	"fmt"
	"strings"
)

// DistinctRows returns a CSV table of n configurations, in the form of the published tables. Models,
// machines, degrees and batches alternate, so that no two rows are equal.
func DistinctRows(n int) string {
	var b strings.Builder
	b.WriteString("row_id,source,model,accelerator,num_gpus,gpus_per_node,tp,pp,zero_stage,recompute,precision,micro_batch,grad_accum,seq_len\n")
	models := []string{"Llama3-8B", "Llama3-70B", "GPT3-175B", "Qwen3-30B-A3B"}
	accelerators := []string{"A100-80GB-SXM", "H100-80GB-SXM"}
	recompute := []string{"none", "selective", "full"}
	for i := range n {
		k := i
		next := func(of int) int { v := k % of; k /= of; return v }
		fmt.Fprintf(&b, "r%d,NVIDIA/Megatron-LM,%s,%s,%d,8,%d,%d,%d,%s,bf16,%d,%d,%d\n", i, models[next(4)], accelerators[next(2)], 64<<next(5),
			1<<next(4), 1<<next(3), next(4), recompute[next(3)], 1<<next(4), 1+next(64), 2048*(1+next(4)))
	}
	return b.String()
}
