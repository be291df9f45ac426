package query

import (
	"fmt"
	"strings"
	"testing"
)

// TestRecomputedBlock: with a block of recomputed layers, time and memory are between those with none and with all of them,
// in proportion to their number, and so are those of other plans that the file could hold.
func TestRecomputedBlock(t *testing.T) {
	check := func(recompute string) *Check {
		const text = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --vocab-size 50304 " +
			"--micro-batch-size 2 --global-batch-size 32 --bf16 --use-distributed-optimizer --tensor-model-parallel-size 4 "
		out, err := unmeasured(t).CheckFile(t.Context(), CheckRequest{Request: Request{Accelerator: "a100-40gb-sxm"}, File: "a.sh", Text: []byte(text + recompute)})
		if err != nil || out.Plan == nil {
			t.Fatalf("%s: %v, %+v", recompute, err, out)
		}
		return out
	}
	none, full := check(""), check("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1")
	for _, n := range []int{4, 8, 24, 32} {
		got, share := check(fmt.Sprintf("--recompute-granularity full --recompute-method block --recompute-num-layers %d", n)), float64(n)/32
		near := func(what string, got, none, full, tolerance float64) {
			if want := (1-share)*none + share*full; !(got > want*(1-tolerance)) || got > want*(1+tolerance) {
				t.Errorf("%d layers: %s %g, want %g between %g and %g", n, what, got, want, none, full)
			}
		}
		near("step time", got.Plan.StepTimeSec, none.Plan.StepTimeSec, full.Plan.StepTimeSec, 1e-9)
		near("memory", got.Plan.MemGiB, none.Plan.MemGiB, full.Plan.MemGiB, 0.01)
		if said := strings.Contains(strings.Join(got.Assumed, "; "), fmt.Sprintf("%d of the 32 layers", n)); said != (n < 32) || len(got.Uncounted) > 0 {
			t.Errorf("%d layers: assumed %q, uncounted %v", n, got.Assumed, got.Uncounted)
		}
	}
}
