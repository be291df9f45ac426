package query

import (
	"slices"
	"testing"
)

// An illegal plan has one reason, whether the reader of the file or the planner finds it, without the question around it.
func TestIllegalOnce(t *testing.T) {
	const network = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --seq-length 4096 --vocab-size 32000 --num-experts 8 "
	for _, tc := range []struct {
		args    string
		devices int
		want    string
	}{
		{"torchrun --nproc_per_node 8 pretrain_gpt.py --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 256", 0, "ep=8 does not divide the 2 ranks of dp x cp x tp"},
		{"pretrain_gpt.py --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 256", 8, "ep=8 does not divide the 2 ranks of dp x cp x tp"},
		{"pretrain_gpt.py --tensor-model-parallel-size 64 --micro-batch-size 1 --global-batch-size 256", 64, "tp=64 does not divide 32 heads"},
	} {
		q := CheckRequest{Request: Request{Accelerator: "h100"}, File: "train.sh", Text: []byte(tc.args + " " + network), Devices: tc.devices}
		out, err := unmeasured(t).CheckFile(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if out.Verdict != "illegal" || !slices.Equal(out.Problems, []string{tc.want}) {
			t.Errorf("%s on %d devices: %s for %q, want illegal for %q", tc.args, tc.devices, out.Verdict, out.Problems, tc.want)
		}
	}
}
