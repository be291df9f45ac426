package worker

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Lacks returns why the worker with this torch cannot run c on a device (CUDA or CPU), "" if it can. It applies
// the rules of features.py and precision.py before anything is started.
func (f Features) Lacks(c spec.Config, device string, compile bool) string {
	p := c.Plan.Normal()
	sharded := p.ZeRO >= 2 && (p.DP*p.CP > 1 || p.Offload == spec.OffloadParams)
	switch {
	case lacksModel(&c, p) != "":
		return lacksModel(&c, p)
	case p.VirtualStages > 1 || (p.CP > 1 || p.EP > 1) && !c.Alone():
		return "the worker supports dp, tp (with sp) and pp, but not cp, ep or vp; one rank of a plan with cp or ep it measures (alone: true)"
	case p.EP > 1 && p.TP > 1 && !(p.SequenceParallel && p.EP%p.TP == 0):
		return fmt.Sprintf("ep=%d with tp=%d needs sp=1 and an ep that tp divides: each rank of the worker routes its own tokens", p.EP, p.TP)
	case p.EP > 1 && p.ZeRO >= 2:
		return fmt.Sprintf("ep=%d with zero=%d: the worker shards experts by zero=1 only", p.EP, p.ZeRO)
	case p.CP > 1 && (c.Model.Kind != spec.Decoder || c.Seq()%(2*p.CP) != 0):
		return fmt.Sprintf("cp=%d: the worker splits sequences of decoders, into %d equal parts", p.CP, 2*p.CP)
	case p.Schedule != spec.ScheduleDefault:
		return fmt.Sprintf("the worker runs pipelines with 1F1B, not with schedule=%s", p.Schedule)
	case p.Shard > 0:
		return fmt.Sprintf("the worker shards over all of dp, not over shard=%d", p.Shard)
	case p.ParamServers > 0 || p.Async:
		return "the worker all-reduces gradients: it does not support parameter servers (ps, async)"
	case sharded && !f.has("fsdp1") && !f.has("fsdp2"):
		return fmt.Sprintf("zero=%d needs FSDP, which torch %s does not have or cannot import; torch 2.4 or later has it", p.ZeRO, f.Torch)
	case sharded && p.PP > 1:
		return fmt.Sprintf("zero=%d with pp=%d would gather the weights for every micro-batch", p.ZeRO, p.PP)
	case p.ZeRO == 1 && p.DP*p.CP > 1 && !f.has("zero_redundancy_optimizer"):
		return fmt.Sprintf("zero=1 needs ZeroRedundancyOptimizer, which torch %s lacks", f.Torch)
	case sharded && p.TP > 1 && !f.has("fsdp2"):
		return fmt.Sprintf("zero=%d with tp=%d needs FSDP2, which torch %s lacks; torch 2.6 or later has it", p.ZeRO, p.TP, f.Torch)
	case compile && !f.has("compile"):
		return fmt.Sprintf("compile needs torch.compile, which torch %s lacks; torch 2.0 or later has it", f.Torch)
	}
	return f.lacksPrecision(p.Precision, device)
}

// resNet matches the residual networks of models_resnet.py; '-', '_' and ' ' are removed first.
var resNet = regexp.MustCompile(`(?i)^resnet(18|50)(v1\.?5)?$`)

// lacksModel applies the rules of models.py.
func lacksModel(c *spec.Config, p spec.Plan) string {
	m, kinds := &c.Model, []spec.Kind{spec.Decoder, spec.Encoder, spec.EncoderDecoder, spec.Vision}
	switch {
	case m.Adapter.Kind != spec.FullTraining:
		return fmt.Sprintf("model %s: the worker trains all weights, not %s", m.Name, m.Adapter)
	case resNet.MatchString(strings.NewReplacer("-", "", "_", "", " ", "").Replace(m.Name)):
		if p.TP > 1 {
			return fmt.Sprintf("model %s: tensor parallelism (tp=%d) is for transformers", m.Name, p.TP)
		}
	case !m.HasShape() || !slices.Contains(kinds, m.Kind):
		return fmt.Sprintf("model %s has no shape to build a network from: the worker supports transformers with layers, hidden, ffn and heads, ResNet-18 and ResNet-50", m.Name)
	case m.SSMLayers > 0 || m.MLPLayers > 0 || m.ExpertHidden > 0 || m.Tower != (spec.Tower{}):
		return fmt.Sprintf("model %s: the worker builds plain transformers, without state-space mixers, latent experts and vision towers", m.Name)
	case m.KVRank > 0 || m.MTPLayers > 0:
		return fmt.Sprintf("model %s: the worker builds plain transformers, without latent attention (kv_rank=%d) and multi-token prediction (mtp_layers=%d)", m.Name, m.KVRank, m.MTPLayers)
	case m.Packed > 0:
		return fmt.Sprintf("model %s: the worker trains samples of one document (packed=%d)", m.Name, m.Packed)
	case m.Imbalance > 1:
		return fmt.Sprintf("model %s: the worker's router cannot be set to imbalance=%g", m.Name, m.Imbalance)
	case m.WindowLayers > 0 && m.Window < c.Seq():
		return fmt.Sprintf("model %s: %d layers see only %d of %d tokens; the worker has no sliding windows", m.Name, m.WindowLayers, m.Window, c.Seq())
	}
	return ""
}

func (f Features) lacksPrecision(p spec.Precision, device string) string {
	switch {
	case p == "" || p == spec.FP32:
		return ""
	case !slices.Contains([]spec.Precision{spec.TF32, spec.BF16, spec.FP16}, p):
		return fmt.Sprintf("the worker computes in fp32, tf32, bf16 and fp16, not %s", p)
	case device == CPU && p == spec.BF16:
		return ""
	case device == CPU:
		return fmt.Sprintf("precision=%s needs a CUDA device; a CPU has bf16 and fp32", p)
	case !f.has(string(p)):
		return fmt.Sprintf("precision=%s needs an NVIDIA device of compute capability 8.0 (Ampere) or later", p)
	}
	return ""
}

func (f Features) has(feature string) bool {
	v, _ := f.Features[feature].(bool)
	return v
}
