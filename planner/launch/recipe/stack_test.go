package recipe

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/planner/launch"
)

// The training stack follows from the format, and for Megatron-LM from its arguments.
func TestStack(t *testing.T) {
	const megatron = "torchrun pretrain_gpt.py --num-layers 16 --hidden-size 2048 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 "
	for _, c := range []struct{ name, text, want string }{
		{"train.sh", megatron, ""}, // of any age
		{"train.sh", megatron + "--use-mcore-models", "Megatron Core"},
		{"train.sh", megatron + "--deepspeed --zero-stage 1", "Megatron-DeepSpeed"},
		{"job.toml", titanHead, "torchtitan"},
	} {
		r, err := Read(c.name, []byte(c.text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Stack(); got != c.want {
			t.Errorf("%s: stack %q, want %q", c.text, got, c.want)
		}
	}
	for format, name := range stacks {
		if s, err := stack.Parse(name); err != nil || s.Canonical() != name {
			t.Errorf("%s: %q is not the name of a training stack: %v", format, name, err)
		}
	}
	// A file that package launch writes is for the stack that the plan was predicted with, release included.
	for _, f := range launch.Frameworks() {
		c := planned(t, "dp=8,mb=1,ga=2,zero=2,precision=bf16")
		s, err := f.Emit(c)
		if err != nil {
			t.Logf("%s: %v", f.Name, err)
			continue
		}
		r, err := Read(f.File, []byte(s.Text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Uncounted) > 0 {
			t.Errorf("%s: %v is not counted, though the training stack has it", f.Name, r.Uncounted)
		}
		want := f.Stack
		if f.Name == "deepspeed" { // JSON has no comment that names the release
			want = "DeepSpeed"
		}
		if got := r.Stack(); got != want {
			t.Errorf("%s: stack %q, want %q", f.Name, got, want)
		}
	}
}
