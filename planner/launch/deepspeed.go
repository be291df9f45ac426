package launch

import (
	"encoding/json"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// deepspeed writes the configuration file of DeepSpeed. The names are those of
// "DeepSpeed Configuration JSON" and runtime/zero/config.py.
var deepspeed = Framework{
	Name:     "deepspeed",
	Doc:      "DeepSpeed: ds_config.json (ZeRO, offload, MiCS, AutoTP)",
	Version:  "DeepSpeed 0.18 (DeepSpeed Configuration JSON)",
	Stack:    "DeepSpeed@0.18",
	File:     "ds_config.json",
	settings: deepspeedSettings,
	program:  true,
	lacks:    deepspeedLacks,
	write:    writeDeepspeed,
}

// deepspeedSettings are keys for parts of the training stack. Traffic of ZeRO 3 is predicted as DeepSpeed overlaps it. With
// ZeRO gradients accumulate in the format of the weights unless the file says otherwise (get_data_types in
// runtime/engine.py); fp16 ones are predicted so too.
var deepspeedSettings = []setting{
	{part: "gradients", value: stack.FP32, text: "grad_accum_dtype", when: func(c *spec.Config, _ *stack.Parts) bool {
		return c.Plan.ZeRO > 0 && c.Plan.Offload == spec.OffloadNone && dtype(c.Plan.Precision) == "torch.bfloat16"
	}},
	{part: "gradients", value: stack.FP32},
	{part: "gradients", value: stack.Half, when: sharded},
	{part: "reduce", value: stack.FP32, text: "communication_data_type"},
	{part: "overlap", value: stack.Backward, text: "overlap_comm", when: sharded},
	{part: "overlap", text: "overlap_comm", when: func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.ZeRO == 3 }},
	{part: "overlap", text: "overlap_comm", when: sharded, note: "overlap_comm can hide traffic that the prediction has in full: --stack overlap=backward predicts it hidden"},
	{part: "overlap", value: stack.None},
}

func deepspeedLacks(c *spec.Config, _ *stack.Parts) []lack {
	var l lacking
	p := &c.Plan
	l.servers(p)
	l.pipelines(p, "pipelines are written into the program (PipelineModule), not configured")
	l.when(p.TP > 1 && p.ZeRO == 3, "tp", p.TP, "tensor_parallel (AutoTP) goes with zero 0 to 2")
	l.when(p.SequenceParallel, "sp", 1, "AutoTP keeps activations whole between layers")
	l.when(p.CP > 1, "cp", p.CP, "ring attention is not there, and Ulysses splits heads")
	l.when(p.EP > 1, "ep", p.EP, "experts are split by the program (deepspeed.moe.layer.MoE)")
	l.when(p.Recompute == spec.RecomputeSelective, "recompute", p.Recompute, "activation checkpointing is of whole layers")
	l.when(replicas(p) > 1 && p.ZeRO < 3, "shard", p.Shard, "MiCS shards parameters too: zero=3")
	l.when(replicas(p) > 1 && p.Offload != spec.OffloadNone, "offload", p.Offload, "it does not go with MiCS, which shard asks for")
	l.when(p.Offload == spec.OffloadOptimizer && p.ZeRO == 0, "offload", p.Offload, "offload_optimizer goes with zero 1 to 3")
	l.when(c.Shape.Most() != c.Shape.Least(), "shape", c.Shape.Devices, "its launcher starts as many processes on every node")
	l.precision(p.Precision, "the configuration has fp16 and bf16, and fp32 without either", spec.BF16, spec.FP16, spec.FP32, spec.TF32, "")
	return l
}

// dsConfig is the part of ds_config.json that follows from a plan.
type dsConfig struct {
	TrainBatch    int            `json:"train_batch_size"`
	MicroBatch    int            `json:"train_micro_batch_size_per_gpu"`
	AccumSteps    int            `json:"gradient_accumulation_steps"`
	Traffic       string         `json:"communication_data_type,omitempty"`
	Types         *dsTypes       `json:"data_types,omitempty"`
	BF16          *dsEnabled     `json:"bf16,omitempty"`
	FP16          *dsEnabled     `json:"fp16,omitempty"`
	ZeRO          dsZeRO         `json:"zero_optimization"`
	TP            *dsTP          `json:"tensor_parallel,omitempty"`
	Checkpointing *dsCheckpoints `json:"activation_checkpointing,omitempty"`
}

type dsTypes struct {
	Accumulated string `json:"grad_accum_dtype"`
}

type dsEnabled struct {
	Enabled bool `json:"enabled"`
}

type dsZeRO struct {
	Stage            int        `json:"stage"`
	OverlapComm      bool       `json:"overlap_comm,omitempty"`
	Contiguous       bool       `json:"contiguous_gradients,omitempty"`
	ReduceScatter    bool       `json:"reduce_scatter,omitempty"`
	MiCSShard        int        `json:"mics_shard_size,omitempty"`
	OffloadOptimizer *dsOffload `json:"offload_optimizer,omitempty"`
	OffloadParam     *dsOffload `json:"offload_param,omitempty"`
}

type dsOffload struct {
	Device string `json:"device"`
	Pin    bool   `json:"pin_memory"`
}

type dsTP struct {
	Size int `json:"autotp_size"`
}

type dsCheckpoints struct {
	Partition  bool `json:"partition_activations"`
	Contiguous bool `json:"contiguous_memory_optimization"`
}

func writeDeepspeed(f Framework, c *spec.Config, _ *spec.Details) Script {
	p := &c.Plan
	d := dsConfig{TrainBatch: p.GlobalBatch(), MicroBatch: p.MicroBatch, AccumSteps: p.AccumSteps}
	settings, _ := f.follow(c)
	d.ZeRO = deepspeedZeRO(p, len(written(settings, "overlap")) > 0)
	if len(written(settings, "reduce")) > 0 {
		d.Traffic = "fp32"
	}
	if len(written(settings, "gradients")) > 0 {
		d.Types = &dsTypes{"fp32"}
	}
	switch p.Precision {
	case spec.BF16, "":
		d.BF16 = &dsEnabled{true}
	case spec.FP16:
		d.FP16 = &dsEnabled{true}
	}
	if p.TP > 1 {
		d.TP = &dsTP{p.TP}
	}
	if p.Recompute == spec.RecomputeFull {
		d.Checkpointing = &dsCheckpoints{}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		panic(err) // numbers, booleans and text always marshal
	}
	return Script{Text: string(text) + "\n", Notes: deepspeedNotes(f, c)}
}

func deepspeedZeRO(p *spec.Plan, overlap bool) dsZeRO {
	z := dsZeRO{Stage: p.ZeRO, OverlapComm: overlap, Contiguous: p.ZeRO > 1, ReduceScatter: p.ZeRO > 0}
	if replicas(p) > 1 {
		z.MiCSShard = p.Shards()
	}
	if p.Offload != spec.OffloadNone {
		z.OffloadOptimizer = &dsOffload{"cpu", true}
	}
	if p.Offload == spec.OffloadParams {
		z.OffloadParam = &dsOffload{"cpu", true}
	}
	return z
}

// deepspeedNotes returns how to start the job, and what the program must do.
func deepspeedNotes(f Framework, c *spec.Config) []string {
	p := &c.Plan
	run := fmt.Sprintf("deepspeed --num_gpus %d train.py --deepspeed --deepspeed_config %s", c.Shape.Most(), quote(f.File))
	if n := c.Shape.Nodes(); n > 1 {
		run = fmt.Sprintf("deepspeed --hostfile hostfile --num_nodes %d --num_gpus %d train.py --deepspeed --deepspeed_config %s", n, c.Shape.Most(), quote(f.File))
	}
	out := []string{"start it with: " + run}
	if p.Offload != spec.OffloadNone {
		out = append(out, "offload: the optimizer is deepspeed.ops.adam.DeepSpeedCPUAdam, or AdamW in an \"optimizer\" of the file")
	}
	if p.Recompute == spec.RecomputeFull {
		out = append(out, "recompute=full: the program checkpoints its layers (deepspeed.checkpointing.checkpoint, or gradient_checkpointing_enable() of transformers); the file only says how")
	}
	if p.TP > 1 {
		out = append(out, "tp: deepspeed.initialize splits the model; the program gives all ranks of a tensor parallel group the same samples")
	}
	if replicas(p) > 1 {
		out = append(out, "shard: the model is built under deepspeed.zero.MiCS_Init")
	}
	switch p.Precision {
	case spec.TF32:
		out = append(out, "precision=tf32: export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1")
	case spec.FP32:
		out = append(out, "precision=fp32: export NVIDIA_TF32_OVERRIDE=0")
	}
	return out
}
