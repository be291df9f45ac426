package batch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// distinctRows returns a table of n different configurations: models, machines,
// degrees and batches in turn.
func distinctRows(n int) string {
	var b strings.Builder
	b.WriteString("row_id,source,model,accelerator,num_gpus,gpus_per_node,tp,pp,zero_stage,recompute,precision,micro_batch,grad_accum,seq_len\n")
	models := []string{"Llama3-8B", "Llama3-70B", "GPT3-175B", "Qwen3-30B-A3B"}
	parts := []string{"A100-80GB-SXM", "H100-80GB-SXM"}
	recompute := []string{"none", "selective", "full"}
	for i := range n {
		k := i
		next := func(of int) int { v := k % of; k /= of; return v }
		fmt.Fprintf(&b, "r%d,NVIDIA/Megatron-LM,%s,%s,%d,8,%d,%d,%d,%s,bf16,%d,%d,%d\n", i, models[next(4)], parts[next(2)], 64<<next(5),
			1<<next(4), 1<<next(3), next(4), recompute[next(3)], 1<<next(4), 1+next(64), 2048*(1+next(4)))
	}
	return b.String()
}

// BenchmarkPredictRows is the path from rows that are read to predictions, on
// one core.
func BenchmarkPredictRows(b *testing.B) {
	const n = 1 << 16
	var rows []answer
	for row, err := range datasets.PublishedRows(b.Context(), "rows.csv", strings.NewReader(distinctRows(n)), false) {
		if err != nil {
			b.Fatal(err)
		}
		rows = append(rows, answer{row: row})
	}
	fam, err := family.Lookup("hybrid")
	if err != nil {
		b.Fatal(err)
	}
	run := &Run{ctx: b.Context(), p: fam.Unfitted, memory: memory.Shipped()}
	b.ReportAllocs()
	for b.Loop() {
		run.answerPart(rows)
	}
	for i := range rows {
		if rows[i].err != nil {
			b.Fatal(rows[i].err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "predictions/s")
}
