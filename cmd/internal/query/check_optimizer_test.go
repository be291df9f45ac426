package query

import (
	"strings"
	"testing"
)

// TestOptimizerOfFile: an optimizer that is a part of training stacks is one of the file's stack, in the memory that
// fit-check states for this part. A part of the request takes precedence.
func TestOptimizerOfFile(t *testing.T) {
	check := func(optimizer, parts string) *Check {
		text := "accelerate launch --num_processes 8 sft.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --gradient_checkpointing --bf16 --max_seq_length 2048 --optim " + optimizer
		out, err := unmeasured(t).CheckFile(t.Context(), CheckRequest{Request: Request{Accelerator: "a100", Stack: parts}, File: "a.sh", Text: []byte(text)})
		if err != nil || out.Plan == nil {
			t.Fatalf("%s: %v, %+v", optimizer, err, out)
		}
		return out
	}
	for optimizer, part := range map[string]string{"adamw_bnb_8bit": "optimizer=adam-8bit", "paged_adamw_8bit": "optimizer=adam-8bit", "adafactor": "optimizer=adafactor", "adamw_torch": "optimizer=adam"} {
		got, want := check(optimizer, ""), check("adamw_torch", part)
		if got.Plan.MemGiB != want.Plan.MemGiB || len(got.Uncounted) > 0 {
			t.Errorf("%s: %g GiB, not counted %v, want %g GiB of %s", optimizer, got.Plan.MemGiB, got.Uncounted, want.Plan.MemGiB, part)
		}
		if said := strings.Contains(strings.Join(got.Assumed, "; "), "the training stack has "+part); said != (optimizer != "adamw_torch") {
			t.Errorf("%s: assumed %q", optimizer, got.Assumed)
		}
	}
	for _, optimizer := range []string{"lion_8bit", "ademamix_8bit", "rmsprop_bnb_8bit", "galore_adamw_8bit", "galore_adafactor"} { // with other states
		if got, want := check(optimizer, ""), check("adamw_torch", ""); got.Plan.MemGiB != want.Plan.MemGiB || len(got.Uncounted) != 1 {
			t.Errorf("%s: %g GiB, not counted %v, want %g GiB of Adam", optimizer, got.Plan.MemGiB, got.Uncounted, want.Plan.MemGiB)
		}
	}
	if got, want := check("adafactor", "optimizer=adam"), check("adamw_torch", ""); got.Plan.MemGiB != want.Plan.MemGiB || len(got.Uncounted) != 1 {
		t.Errorf("a part of the request: %g GiB, not counted %v, want %g GiB", got.Plan.MemGiB, got.Uncounted, want.Plan.MemGiB)
	}
}
