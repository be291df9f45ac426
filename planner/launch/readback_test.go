package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
)

// TestNothingIsDropped reads the settings back as a plan, which must equal the plan
// they were written from. Parts without a setting are refused.
func TestNothingIsDropped(t *testing.T) {
	spectest.Checks(t, 500)
	models := []spec.Config{
		config(t, "Llama3-8B", "H100", "1", "dp=1"), config(t, "Mixtral-8x7B", "H100", "1", "dp=1"),
		config(t, "Qwen3-30B-A3B", "H100", "1", "dp=1"), config(t, "GPT3-5B", "H100", "1", "dp=1"), config(t, "BERT-large", "H100", "1", "dp=1"),
	}
	written := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(models).Draw(t, "model")
		c.Plan = spectest.DrawPlan(t)
		if q := c.Plan.Normal(); q.Check(c.Model) != nil || planner.Redundant(&q) != "" || planner.CannotOffload(&q) != "" {
			t.Skip("not legal")
		}
		c.Shape = spec.Packed(c.Plan.Devices(), 8)
		for _, f := range Frameworks() {
			s, err := f.Emit(c)
			if errors.Is(err, ErrCannotExpress) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			written[f.Name]++
			if got, want := readBack[f.Name](t, &c, s), c.Plan.Normal(); got.Normal() != want {
				t.Fatalf("%s: %s came back as %s\n%s", f.Name, want, got, s.Text)
			}
		}
	})
	for _, f := range Frameworks() {
		if written[f.Name] == 0 && !testing.Short() { // a few draws may all be illegal
			t.Errorf("%s expressed no plan at all", f.Name)
		}
	}
}

// readBack reads a framework's settings as a plan.
var readBack = map[string]func(*rapid.T, *spec.Config, Script) spec.Plan{
	"megatron": readMegatron, "torchrun": readTorchrun, "deepspeed": readDeepspeed, "torchtitan": readTorchtitan, "accelerate": readAccelerate,
}

// options returns the options of a script's arrays with their values, "" for options
// without one.
func options(script string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(script, "\n") {
		if option, value, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(option, "--") {
			out[option] = strings.Trim(value, "'")
		}
	}
	return out
}

func number(t *rapid.T, s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// env reads the format of 32-bit multiplications.
func env(text string, half bool) spec.Precision {
	switch {
	case strings.Contains(text, "export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"):
		return spec.TF32
	case strings.Contains(text, "export NVIDIA_TF32_OVERRIDE=0"):
		return spec.FP32
	case half:
		return spec.FP16
	}
	return spec.BF16
}

func has(o map[string]string, option string) bool { _, ok := o[option]; return ok }

func readMegatron(t *rapid.T, c *spec.Config, s Script) spec.Plan {
	o := options(s.Text)
	p := spec.Plan{TP: number(t, o["--tensor-model-parallel-size"]), PP: number(t, o["--pipeline-model-parallel-size"]),
		CP: number(t, o["--context-parallel-size"]), EP: number(t, o["--expert-model-parallel-size"]),
		MicroBatch: number(t, o["--micro-batch-size"]), SequenceParallel: has(o, "--sequence-parallel"),
		Recompute: spec.Recompute(o["--recompute-granularity"]), Precision: env(s.Text, has(o, "--fp16"))}
	p.DP = c.Shape.Total() / (p.TP * p.PP * p.CP)
	p.AccumSteps = number(t, o["--global-batch-size"]) / (p.DP * p.MicroBatch)
	if n := number(t, o["--num-layers-per-virtual-pipeline-stage"]); n > 0 {
		p.VirtualStages = c.Model.Layers / p.PP / n
	}
	switch o["--data-parallel-sharding-strategy"] {
	case "optim_grads":
		p.ZeRO = 2
	case "optim_grads_params":
		p.ZeRO = 3
	default:
		if has(o, "--use-distributed-optimizer") && has(o, "--overlap-param-gather") {
			p.ZeRO = 1
		}
	}
	if n := number(t, o["--num-distributed-optimizer-instances"]); n > 0 {
		p.Shard = p.DP * p.CP / n
	}
	if has(o, "--optimizer-cpu-offload") {
		p.Offload = spec.OffloadOptimizer
	}
	switch {
	case has(o, "--fp8-format"):
		p.Precision = spec.FP8
	case has(o, "--fp4-format"):
		p.Precision = spec.FP4
	}
	if layout := o["--pipeline-model-parallel-layout"]; layout != "" {
		p.VirtualStages = checkLayout(t, layout, p, c.Model.Layers)
	} else if c.Model.Layers%p.PP != 0 {
		t.Fatalf("%d layers on %d stages without a layout", c.Model.Layers, p.PP)
	}
	if etp := number(t, o["--expert-tensor-parallel-size"]); c.Model.Experts > 0 && etp*p.EP != max(p.EP, p.TP) {
		t.Fatalf("experts over %d x %d devices", p.EP, etp)
	}
	return p
}

// checkLayout reads E, t*N, | and L, and returns the chunks of each stage.
func checkLayout(t *rapid.T, layout string, p spec.Plan, layers int) int {
	inner, ok := strings.CutPrefix(layout, "E")
	inner, ok2 := strings.CutSuffix(inner, "L")
	parts := strings.Split(inner, "|")
	if !ok || !ok2 || len(parts)%p.PP != 0 {
		t.Fatalf("layout %s for %d stages", layout, p.PP)
	}
	p.VirtualStages = len(parts) / p.PP
	for i, s := range parts {
		n := 0
		if s != "" {
			n = number(t, strings.TrimPrefix(s, "t*"))
		}
		if n != p.ChunkLayers(layers, i%p.PP, i/p.PP) {
			t.Fatalf("layout %s: %d layers in chunk %d", layout, n, i)
		}
	}
	return p.VirtualStages
}

func readTorchrun(t *rapid.T, c *spec.Config, s Script) spec.Plan {
	o := options(s.Text)
	p := spec.Plan{DP: c.Shape.Total(), MicroBatch: number(t, o["--micro-batch-size"]), AccumSteps: number(t, o["--gradient-accumulation-steps"]),
		Precision: env(s.Text, strings.Contains(s.Text, "torch.float16"))}
	switch {
	case strings.Contains(s.Text, "reshard_after_forward=True"):
		p.ZeRO = 3
	case strings.Contains(s.Text, "reshard_after_forward=False"):
		p.ZeRO = 2
	case strings.Contains(s.Text, "ZeroRedundancyOptimizer(model"):
		p.ZeRO = 1
	}
	if _, rest, ok := strings.Cut(s.Text, `init_device_mesh("cuda", (`); ok {
		mesh, _, _ := strings.Cut(rest, ")")
		if _, shard, two := strings.Cut(mesh, ", "); two {
			p.Shard = number(t, shard)
		}
	}
	if strings.Contains(s.Text, "offload_policy=CPUOffloadPolicy()") {
		p.Offload = spec.OffloadParams
	}
	switch {
	case strings.Contains(s.Text, "checkpoint_wrapper(layer)"):
		p.Recompute = spec.RecomputeFull
	case strings.Contains(s.Text, "checkpoint(attention_core"):
		p.Recompute = spec.RecomputeSelective
	}
	return p
}

func readDeepspeed(t *rapid.T, c *spec.Config, s Script) spec.Plan {
	var d dsConfig
	if err := json.Unmarshal([]byte(s.Text), &d); err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(s.Notes, "\n")
	p := spec.Plan{MicroBatch: d.MicroBatch, AccumSteps: d.AccumSteps, ZeRO: d.ZeRO.Stage, Shard: d.ZeRO.MiCSShard, Precision: env(notes, d.FP16 != nil)}
	if d.TP != nil {
		p.TP = d.TP.Size
	}
	p.DP = c.Shape.Total() / max(p.TP, 1)
	switch {
	case d.ZeRO.OffloadParam != nil:
		p.Offload = spec.OffloadParams
	case d.ZeRO.OffloadOptimizer != nil:
		p.Offload = spec.OffloadOptimizer
	}
	if d.Checkpointing != nil {
		p.Recompute = spec.RecomputeFull
	}
	if d.TrainBatch != p.GlobalBatch() {
		t.Fatalf("train_batch_size %d of %s", d.TrainBatch, p)
	}
	return p
}

func readAccelerate(t *rapid.T, c *spec.Config, s Script) spec.Plan {
	key := map[string]string{}
	for line := range strings.Lines(s.Text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		key[name] = strings.Trim(value, "'")
	}
	p := spec.Plan{ZeRO: number(t, key["zero_stage"]), TP: number(t, key["parallelism_config_tp_size"]), CP: number(t, key["parallelism_config_cp_size"])}
	if _, err := fmt.Sscanf(s.Notes[1], "the program sets a micro-batch of %d (per_device_train_batch_size) and %d micro-batches", &p.MicroBatch, &p.AccumSteps); err != nil {
		t.Fatal(err, s.Notes)
	}
	if n := key["gradient_accumulation_steps"]; n != "" && number(t, n) != p.AccumSteps {
		t.Fatalf("gradient_accumulation_steps %s of %s", n, p)
	}
	if key["fsdp_version"] == "2" {
		p.ZeRO = 2
		if key["fsdp_reshard_after_forward"] == "true" {
			p.ZeRO = 3
		}
	}
	if key["fsdp_offload_params"] == "true" {
		p.Offload = spec.OffloadParams
	} else if key["offload_optimizer_device"] == "cpu" {
		p.Offload = spec.OffloadOptimizer
	}
	if key["fsdp_activation_checkpointing"] == "true" {
		p.Recompute = spec.RecomputeFull
	}
	p.DP = number(t, key["num_processes"]) / (max(p.TP, 1) * max(p.CP, 1))
	if number(t, key["parallelism_config_dp_replicate_size"]) > 1 {
		p.Shard = number(t, key["parallelism_config_dp_shard_size"]) * max(p.CP, 1)
	}
	p.Precision = map[string]spec.Precision{"bf16": spec.BF16, "fp16": spec.FP16, "no": spec.FP32}[key["mixed_precision"]]
	return p
}

func readTorchtitan(t *rapid.T, c *spec.Config, s Script) spec.Plan {
	var d struct {
		Training struct {
			Local   int    `toml:"local_batch_size"`
			Global  int    `toml:"global_batch_size"`
			Offload bool   `toml:"enable_cpu_offload"`
			Param   string `toml:"mixed_precision_param"`
		}
		Parallelism struct {
			Replicate int        `toml:"data_parallel_replicate_degree"`
			Shard     int        `toml:"data_parallel_shard_degree"`
			Reshard   string     `toml:"fsdp_reshard_after_forward"`
			TP        int        `toml:"tensor_parallel_degree"`
			CP        int        `toml:"context_parallel_degree"`
			PP        int        `toml:"pipeline_parallel_degree"`
			EP        int        `toml:"expert_parallel_degree"`
			Schedule  string     `toml:"pipeline_parallel_schedule"`
			Micro     int        `toml:"pipeline_parallel_microbatch_size"`
			PerStage  int        `toml:"pipeline_parallel_layers_per_stage"`
			Parts     [][]string `toml:"module_fqns_per_model_part"`
		}
		Checkpoint struct{ Mode spec.Recompute } `toml:"activation_checkpoint"`
		Model      struct{ Converters []string }
	}
	if _, err := toml.Decode(s.Text, &d); err != nil {
		t.Fatal(err)
	}
	q := d.Parallelism
	p := spec.Plan{DP: q.Replicate * q.Shard, TP: q.TP, CP: q.CP, PP: q.PP, EP: q.EP, MicroBatch: d.Training.Local, SequenceParallel: q.TP > 1,
		Recompute: d.Checkpoint.Mode, Precision: env(strings.Join(s.Notes, "\n"), false)}
	if q.PP > 1 {
		p.MicroBatch = q.Micro
	}
	p.AccumSteps = d.Training.Global / (p.DP * p.MicroBatch)
	if n := q.Shard * q.CP; n > 1 {
		p.ZeRO = map[string]int{"always": 3, "never": 2}[q.Reshard]
		if p.Shard = n; q.PP > 1 {
			p.ZeRO = 1
		}
	}
	if d.Training.Offload {
		p.Offload, p.ZeRO = spec.OffloadParams, 3
	}
	if len(d.Model.Converters) > 0 {
		p.Precision = spec.FP8
	}
	switch q.Schedule {
	case "GPipe":
		p.Schedule = spec.ScheduleGPipe
	case "ZBVZeroBubble":
		p.Schedule = spec.ScheduleZBV
	case "DualPipeV":
		p.Schedule = spec.ScheduleDualPipeV
	case "Interleaved1F1B":
		p.VirtualStages = len(q.Parts) / q.PP
		if q.Parts == nil {
			p.VirtualStages = c.Model.Layers / q.PP / q.PerStage
		}
	}
	if q.PP > 1 {
		checkParts(t, q.Parts, q.PerStage, p, c.Model.Layers)
	}
	return p
}

// checkParts reads the layers of the chunks of all stages.
func checkParts(t *rapid.T, parts [][]string, perStage int, p spec.Plan, layers int) {
	if parts == nil {
		if perStage*p.PP*p.Chunks() != layers {
			t.Fatalf("%d layers on each of %d chunks, of %d", perStage, p.PP*p.Chunks(), layers)
		}
		return
	}
	next := 0
	for i, part := range parts {
		n := 0
		for _, name := range part {
			if name == "layers."+strconv.Itoa(next) {
				next, n = next+1, n+1
			}
		}
		if n != p.ChunkLayers(layers, i%p.PP, i/p.PP) {
			t.Fatalf("chunk %d has %v", i, part)
		}
	}
	last := parts[len(parts)-1]
	if next != layers || len(parts) != p.PP*p.Chunks() || parts[0][0] != "tok_embeddings" || last[len(last)-1] != "output" {
		t.Fatalf("parts %v", parts)
	}
}
