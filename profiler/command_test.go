package profiler

import (
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestReadCommand(t *testing.T) {
	text := `
name: mine
models: GPT
runner:
  name: command
  command: >
    torchrun --nproc-per-node {nproc} train.py
    --batch {mb}
  env: {TOKENS: "{seq}", NCCL_ALGO: Ring}
  cwd: /src
  timed_steps: 30
  emit: torchtitan
`
	got, err := ReadCampaign("f.yaml", []byte(text), testCatalog)
	if err != nil {
		t.Fatal(err)
	}
	c := got.Runner.Command
	if !c.Shell() || c.Steps() != 35 || c.Dir != "/src" || c.Framework != "torchtitan@2025-10" || !c.EndsItself() ||
		!slices.Equal(c.Env, []string{"NCCL_ALGO=Ring", "TOKENS={seq}"}) {
		t.Errorf("%+v", c)
	}
	other := c
	other.Timed++
	if c.Hash() == other.Hash() || len(c.Hash()) != 16 {
		t.Errorf("hashes %s and %s", c.Hash(), other.Hash())
	}
}

func TestExpand(t *testing.T) {
	x := spec.Config{Model: spec.Model{Name: "My model", SeqLen: 128}, Shape: spec.NewShape(8),
		Plan: spec.Plan{DP: 2, TP: 2, PP: 2, MicroBatch: 4, AccumSteps: 8, ZeRO: 1, SequenceParallel: true, Precision: spec.BF16}}
	at := Places{Node: 3, Address: "10.0.0.7", Port: 29501, Out: "/tmp/a b", Emit: "/tmp/job.toml"}
	all := "{" + strings.Join(Placeholders(), "} {") + "}"
	want := []string{"2", "2", "2", "1", "1", "4", "8", "64", "1", "1", "none", "none", "bf16", "My model", "128", "7", "8", "1", "3", "10.0.0.7", "29501", "/tmp/a b", "/tmp/job.toml"}
	c := CommandSpec{Args: append([]string{"run"}, strings.Fields(all)...), WarmUp: 2, Timed: 5}
	if args, _ := c.Expand(x, at); !slices.Equal(args[1:], want) {
		t.Errorf("%q, want %q", args[1:], want)
	}
	c = CommandSpec{Args: []string{`x {model} {out} {{mb}} ${mb} {a,b} {} '{print $1}' {"dp":1}`}, Env: []string{"OUT={out}"}}
	args, env := c.Expand(x, at)
	if want := `x 'My model' '/tmp/a b' {mb} ${mb} {a,b} {} '{print $1}' {"dp":1}`; args[2] != want || env[0] != "OUT=/tmp/a b" {
		t.Errorf("%q, %q; want %q", args, env, want)
	}
}
