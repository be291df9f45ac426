package datasets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// plan reads the plan columns.
func (r *publishedRow) plan() {
	p := spec.Plan{
		DP: r.Count("dp"), TP: r.Count("tp"), PP: r.Count("pp"), CP: r.Count("cp"), EP: r.Count("ep"),
		VirtualStages: r.Count("vpp"), ZeRO: r.Count("zero_stage"), Shard: r.Count("shard"),
		Precision: r.precision(), Schedule: r.schedule(),
	}
	if p.ZeRO > 3 {
		r.Fail("zero_stage", fmt.Errorf("is not 0, 1, 2 or 3"))
	}
	p.Recompute = r.recompute()
	p.Offload = r.offload()
	p.SequenceParallel = r.sequenceParallel(&p)
	r.degrees(&p)
	r.distributed(&p)
	if n := max(p.DP, 1) * max(p.CP, 1); p.Shard > 0 && (p.ZeRO == 0 || n%p.Shard != 0) {
		r.Fail("shard", fmt.Errorf("does not divide dp x cp = %d, or there is no ZeRO", n))
	}
	r.batches(&p)
	r.m.Config.Plan = p.Normal()
	r.m.Config.AloneStage = r.Count("alone_stage")
	if r.m.Config.CheckAlone() != nil {
		r.Fail("alone_stage", fmt.Errorf("is not one of the %d pipeline stages", r.m.Config.Plan.PP))
	}
	r.unrecorded()
}

// sequenceParallel reads the column sp. Where it is blank, sequence parallelism is assumed for Megatron-LM with
// selective recomputation, since both were introduced to be used together (Korthikanti et al. 2022, section 6).
func (r *publishedRow) sequenceParallel(p *spec.Plan) bool {
	switch strings.ToLower(r.Str("sp")) {
	case "":
		return p.TP > 1 && p.Recompute == spec.RecomputeSelective && r.stack == "Megatron-LM"
	case "1", "true":
		return true
	case "0", "false":
		return false
	}
	r.Fail("sp", fmt.Errorf("is not 0, 1, false or true"))
	return false
}

// distributed shards the training state as the row's recipe says, or the optimizer if that is the default of the source's
// stack, unless the row records it.
func (r *publishedRow) distributed(p *spec.Plan) {
	if r.Str("zero_stage") != "" || !r.source.distributed {
		return
	}
	n := max(p.DP, 1) * max(p.CP, 1)
	if r.recipe != nil && r.recipe.fsdp > 0 {
		if p.ZeRO = 3; r.recipe.fsdp/max(p.TP, 1) < n {
			p.Shard = r.recipe.fsdp / max(p.TP, 1)
			r.wrong("weights were sharded in each NVLink domain and the optimizer over all, which a plan cannot express")
		}
		return
	}
	if n > 1 {
		p.ZeRO = 1
	}
	r.note("zero_stage not recorded, taken as %d", p.ZeRO)
}

// unrecorded notes in one line which optional columns are blank, and the assumed values.
func (r *publishedRow) unrecorded() {
	missing := 0
	for i, col := range optional {
		if r.Str(col.name) == "" && !r.documents(col.name) {
			missing |= 1 << i
			r.blank = strings.TrimPrefix(r.blank+","+col.name, ",")
		}
	}
	if missing == 0 {
		return
	}
	text := r.table.blank[missing]
	if text == "" {
		var names, values []string
		for i, col := range optional {
			if missing&(1<<i) != 0 {
				names, values = append(names, col.name), append(values, col.taken)
			}
		}
		text = strings.Join(names, ", ") + " not recorded, taken as " + strings.Join(values, ", ")
		r.table.blank[missing] = text
	}
	r.notes = append(r.notes, text)
}

// optional are the columns of unrecorded, and the values assumed for blanks.
var optional = []struct{ name, taken string }{{"zero_stage", "0"}, {"recompute", "none"}, {"precision", "16 bit"}}

// degrees sets a data parallel degree that is not recorded. It compares the product with the number
// of devices, and expert parallelism with the ranks of a stage.
func (r *publishedRow) degrees(p *spec.Plan) {
	for _, d := range []int{p.DP, p.TP, p.PP, p.CP, p.EP, p.VirtualStages} {
		if d > table.MaxDevices {
			r.Fail("dp", fmt.Errorf("a degree of %d is more than %d", d, table.MaxDevices))
			return
		}
	}
	n := r.m.Config.Shape.Total()
	if rest := max(p.TP, 1) * max(p.PP, 1) * max(p.CP, 1); p.DP == 0 && n%rest == 0 {
		p.DP = n / rest
	}
	if p.Devices() != n {
		r.mismatch = true
		r.wrong("dp x tp x pp x cp = %d, the row has %d devices", p.Devices(), n)
	}
	switch m := &r.m.Config.Model; {
	case p.EP > 1 && m.Experts == 0 && (m.HasShape() || m.ParamCount > 0): // nothing is guessed about others
		r.Fail("ep", fmt.Errorf("needs a model with experts, and %s has none recorded: give experts, experts_per_token and expert_ffn, or config", m.Name))
	case p.EP > 1 && m.Experts%p.EP != 0:
		r.Fail("ep", fmt.Errorf("does not divide the %d experts of %s", m.Experts, m.Name))
	}
	if ranks := max(p.DP, 1) * max(p.CP, 1) * max(p.TP, 1); p.EP > 0 && ranks%p.EP != 0 {
		r.wrong("ep = %d does not divide dp x cp x tp = %d", p.EP, ranks)
	}
}

// accumulatedFrom is the batch per device and step that is too large for one micro-batch of a
// language model: some tables of DeepLearningExamples have the accumulated batch in the micro-batch
// column (4096 sequences on a V100).
const accumulatedFrom = 1024

// batches sets micro-batch and accumulation so that the plan has the recorded global batch, and
// notes where the row leaves them open or contradicts itself.
func (r *publishedRow) batches(p *spec.Plan) {
	p.MicroBatch, p.AccumSteps, r.batch = r.Count("micro_batch"), r.Count("grad_accum"), r.Count("global_batch")
	if max(p.MicroBatch, p.AccumSteps, r.batch) > maxBatch {
		r.Fail("micro_batch", fmt.Errorf("a batch of more than %d samples", maxBatch))
		return
	}
	r.perHost(p)
	r.accumulated(p)
	dp := max(p.DP, 1)
	switch {
	case r.batch > 0 && p.MicroBatch > 0:
		r.fitAccumulation(p, dp)
	case r.batch > 0:
		r.chooseMicroBatch(p, dp)
	case p.MicroBatch > 0:
		r.batch = p.GlobalBatch()
	default: // stays unknown
		r.note("batch not recorded, taken as one sample per replica")
		return
	}
	r.batchKnown = true
}

// maxBatch bounds samples per step, so that products fit in an int.
const maxBatch = 1 << 30

// perHost divides a batch per host by its devices.
func (r *publishedRow) perHost(p *spec.Plan) {
	if r.source.hostBatch && p.DP > 1 && r.batch == 0 && p.MicroBatch > 0 {
		r.batch, p.MicroBatch = p.MicroBatch, 0
		if r.batch%p.DP == 0 {
			p.MicroBatch = r.batch / p.DP
		}
	}
}

// accumulated splits an accumulated batch in the micro-batch column.
func (r *publishedRow) accumulated(p *spec.Plan) {
	if r.m.Config.SeqLen == 0 || p.MicroBatch < accumulatedFrom || r.batch > 0 {
		return
	}
	if p.AccumSteps < 2 || p.MicroBatch%p.AccumSteps != 0 || p.MicroBatch/p.AccumSteps >= accumulatedFrom {
		r.Fail("micro_batch", fmt.Errorf("is more sequences than a device holds"))
		return
	}
	p.MicroBatch /= p.AccumSteps
}

// fitAccumulation sets the accumulation if both batches are recorded.
func (r *publishedRow) fitAccumulation(p *spec.Plan, dp int) {
	ga, even := r.batch/(dp*p.MicroBatch), r.batch%(dp*p.MicroBatch) == 0
	switch {
	case even && (p.AccumSteps == 0 || p.AccumSteps == ga):
		p.AccumSteps = ga
	case even:
		r.wrong("dp %d x micro-batch %d x accumulation %d is not the global batch %d", dp, p.MicroBatch, p.AccumSteps, r.batch)
		p.AccumSteps = ga
	default:
		r.wrong("global batch %d is not a multiple of dp %d x micro-batch %d", r.batch, dp, p.MicroBatch)
		p.AccumSteps = max(ga, 1)
	}
}

// chooseMicroBatch sets the micro-batch if only the global batch is recorded. A pipeline is assumed
// to run single samples, or as many micro-batches as stages if that is the stack's default;
// anything else runs the whole share of a replica.
func (r *publishedRow) chooseMicroBatch(p *spec.Plan, dp int) {
	share := max(r.batch/dp, 1)
	p.MicroBatch, p.AccumSteps = share, 1
	switch {
	case p.PP > 1 && r.source.stageBatches && share%p.PP == 0:
		p.MicroBatch, p.AccumSteps = share/p.PP, p.PP
	case p.PP > 1:
		p.MicroBatch, p.AccumSteps = 1, share
	}
	r.assume("micro-batch not recorded, taken as %d", p.MicroBatch)
}

// publishedPrecisions maps the sources' words; "fp32(tf32 where available)" depends on the
// accelerator.
var publishedPrecisions = map[string]spec.Precision{
	"": "", "fp32": spec.FP32, "tf32": spec.TF32, "fp16": spec.FP16, "amp-fp16": spec.FP16,
	"bf16": spec.BF16, "bf16-true": spec.BF16,
	"fp8": spec.FP8, "mxfp8": spec.MXFP8, "fp8-cs": spec.FP8, "fp8-mx": spec.MXFP8,
	"fp8-tensorwise": spec.FP8, "fp8-rowwise": spec.FP8Rowwise,
	"nvfp4": spec.FP4, "mxfp4": spec.FP4, "fp4": spec.FP4,
	"float32": spec.FP32, "float16": spec.FP16, "half": spec.FP16, "bfloat16": spec.BF16,
	"fp16-mixed": spec.FP16, "bf16-mixed": spec.BF16, "amp-bf16": spec.BF16, "fp16-true": spec.FP16,
}

func (r *publishedRow) precision() spec.Precision {
	s := strings.ToLower(r.Str("precision"))
	if s == "" && r.source.precision != "" {
		r.note("precision not recorded, taken as %s", r.source.precision)
		return r.source.precision
	}
	if strings.HasPrefix(s, "fp32(tf32") {
		if r.m.Config.Accelerator.TF32 > 0 {
			return spec.TF32
		}
		return spec.FP32
	}
	p, ok := publishedPrecisions[s]
	if !ok {
		r.Fail("precision", fmt.Errorf("is not a known format"))
	}
	return p
}

func (r *publishedRow) schedule() spec.Schedule {
	s := spec.Schedule(strings.ToLower(r.Str("schedule")))
	if s == "" || slices.Contains(spec.Schedules(), s) {
		return s
	}
	r.Fail("schedule", fmt.Errorf("is not one of %v", spec.Schedules()))
	return ""
}

func (r *publishedRow) recompute() spec.Recompute {
	switch s := strings.ToLower(r.Str("recompute")); s {
	case "", "none":
		if s == "" && r.recomputes() {
			r.note("recompute not recorded, taken from the recipe")
			return spec.RecomputeSelective
		}
		return spec.RecomputeNone
	case "selective", "full":
		return spec.Recompute(s)
	}
	r.Fail("recompute", fmt.Errorf("is not none, selective or full"))
	return ""
}

func (r *publishedRow) offload() spec.Offload {
	switch s := strings.ToLower(r.Str("offload")); {
	case s == "" || s == "none":
		return spec.OffloadNone
	case s == "optimizer":
		return spec.OffloadOptimizer
	case s == "cpu":
		r.assume("what is offloaded not recorded, taken as the optimizer")
		return spec.OffloadOptimizer
	case s == "optimizer+params", s == "params":
		return spec.OffloadParams
	case strings.HasPrefix(s, "activations"):
		r.wrong("activations were offloaded, which a plan cannot express")
		return spec.OffloadNone
	}
	r.Fail("offload", fmt.Errorf("is not none, optimizer or optimizer+params"))
	return ""
}
