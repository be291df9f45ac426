package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// GiB is 2^30 bytes.
const GiB = 1 << 30

// Breakdown is the peak memory of the fullest device, in bytes, by use.
type Breakdown struct {
	Parameters  float64 // weights as kept between steps
	Gradients   float64
	Optimizer   float64 // fp32 master weights and moments
	Gathered    float64 // full parameters and gradients of the units ZeRO-3 has in hand
	Activations float64 // kept for the backward pass, all micro-batches in flight
	Working     float64 // the layer being recomputed, or the logits: whichever is larger
	Buffers     float64 // communication buckets and pipeline receive buffers
	Overhead    float64 // device context, communicators, allocator fragmentation

	HostBytes float64 // host memory per device, for offload; not part of Total
	Stage     int     // the pipeline stage this device is in, from 0
}

// Total returns the bytes on the device.
func (b Breakdown) Total() float64 {
	return b.Parameters + b.Gradients + b.Optimizer + b.Gathered + b.Activations + b.Working + b.Buffers + b.Overhead
}

// String lists the parts of at least 0.05 GiB, largest first, in GiB:
// "optimizer 48.6, parameters 16.2".
func (b Breakdown) String() string {
	parts := []struct {
		name  string
		bytes float64
	}{
		{"parameters", b.Parameters}, {"gradients", b.Gradients}, {"optimizer", b.Optimizer},
		{"gathered", b.Gathered}, {"activations", b.Activations}, {"working set", b.Working},
		{"buffers", b.Buffers}, {"overhead", b.Overhead},
	}
	slices.SortStableFunc(parts, func(x, y struct {
		name  string
		bytes float64
	}) int {
		return cmp.Compare(y.bytes, x.bytes)
	})
	var out []string
	for _, p := range parts {
		if p.bytes >= 0.05*GiB {
			out = append(out, fmt.Sprintf("%s %.1f", p.name, p.bytes/GiB))
		}
	}
	return strings.Join(out, ", ")
}

// Estimate returns the peak memory of c. The error wraps
// perfmodel.ErrNotCovered when the model's size is unknown.
func Estimate(c spec.Config) (Breakdown, error) {
	e, err := For(c)
	if err != nil {
		return Breakdown{}, err
	}
	return e.Plan(c.Plan), nil
}

// Estimator answers for many plans of one model, sequence length and training
// stack. It is a value without pointers: safe for concurrent use.
type Estimator struct {
	shape  bool // count per tensor; else the opaque rule
	seq    float64
	layers float64
	hidden float64
	ffn    float64
	heads  float64
	kv     float64
	head   float64
	vocab  float64

	mlp       float64 // activations kept per MLP, in units of the inner width: 2, gated 3
	masks     float64 // dropout masks per layer, in units of the hidden width
	moe       float64 // share of layers that route
	topK      float64 // experts a token visits, shared ones included
	expertFFN float64

	w weights

	flops float64 // forward FLOPs per sample, opaque models
	nn    int     // layers as an int, for stage arithmetic
	stack stack
}

// For returns the Estimator of everything in c but its plan.
func For(c spec.Config) (Estimator, error) {
	m, _ := GuessShape(c.Model)
	e := Estimator{stack: stackOf(c.Framework, c.Accelerator.Arch), seq: float64(max(c.Seq(), 1)), nn: m.Layers}
	e.w = weightsOf(m)
	if e.w.total() <= 0 {
		return e, fmt.Errorf("memory: model %s has neither layers and hidden size nor a parameter count: %w", m.Name, perfmodel.ErrNotCovered)
	}
	if !m.HasShape() || m.Heads <= 0 {
		e.flops = m.FLOPsPerSample
		if e.flops <= 0 {
			e.flops = 2 * m.ActiveParams() * e.seq
		}
		return e, nil
	}
	e.shape = true
	e.layers, e.hidden, e.ffn = float64(m.Layers), float64(m.Hidden), float64(m.FFN)
	e.heads, e.kv, e.head, e.vocab = float64(m.Heads), float64(m.KV()), float64(m.Head()), float64(m.Vocab)
	e.mlp, e.masks = 2, 2
	if m.GatedMLP {
		e.mlp, e.masks = 3, 0 // gated models are trained without dropout
	}
	if m.Experts > 0 {
		e.moe = float64(m.MoELayers()) / e.layers
		e.topK = float64(m.ExpertsPerToken + m.SharedExperts)
		e.expertFFN = float64(m.ExpertFFN)
		e.masks = 0
	}
	return e, nil
}

// Plan returns the peak over the pipeline stages of plan p. Stages that can be
// the fullest are the first (most micro-batches in flight, embedding), the
// second (where embedding and head count as layers) and the last (head,
// logits).
func (e *Estimator) Plan(p spec.Plan) Breakdown {
	p = p.Normal()
	p.SequenceParallel = p.SequenceParallel || e.stack.alwaysSequence && p.TP > 1
	best := e.stage(&p, 0)
	if p.PP == 1 {
		return best
	}
	top := best.Total()
	for _, s := range [2]int{1, p.PP - 1} {
		if b := e.stage(&p, s); b.Total() > top {
			best, top = b, b.Total()
		}
	}
	return best
}

// Bytes returns Plan(p).Total().
func (e *Estimator) Bytes(p spec.Plan) float64 { b := e.Plan(p); return b.Total() }

const (
	// contextBytes is the CUDA context with loaded kernels and workspaces;
	// communicatorBytes what one NCCL communicator holds. Both as read off
	// nvidia-smi on idle A100 processes; between 0.5 and 1.5 GiB in practice.
	contextBytes      = 0.9 * GiB
	communicatorBytes = 0.25 * GiB
	// fragmentation is the share of dynamic memory the caching allocator
	// holds but cannot use; 3-8 % is usual.
	fragmentation = 0.05
	// bucketBytes is one gradient bucket in flight; DDP and the distributed
	// optimizer keep two.
	bucketBytes = 64 << 20
)

func (e *Estimator) stage(p *spec.Plan, stage int) Breakdown {
	b := Breakdown{Stage: stage}
	layers := e.layersOn(p, stage)
	own := e.w.onDevice(p, layers, stage)
	e.states(&b, p, own)
	e.activations(&b, p, stage, layers)

	if p.DP*p.CP > 1 {
		b.Buffers += 2 * bucketBytes
		b.Overhead += communicatorBytes
	}
	if p.TP > 1 {
		b.Overhead += communicatorBytes
	}
	if p.PP > 1 {
		b.Overhead += communicatorBytes
	}
	b.Overhead += contextBytes + fragmentation*(b.Activations+b.Working+b.Gathered)
	return b
}

// layersOn returns the layers of a stage. Where PP does not divide the layers
// but divides layers+2, embedding and head count as a layer each (how BLOOM
// and Llama 3.1 405B were balanced); else the fullest stage is assumed.
func (e *Estimator) layersOn(p *spec.Plan, stage int) float64 {
	if !e.shape || p.PP == 1 || e.nn%p.PP == 0 {
		return e.layers / float64(p.PP)
	}
	if (e.nn+2)%p.PP == 0 {
		n := (e.nn + 2) / p.PP
		if stage == 0 || stage == p.PP-1 {
			n--
		}
		return float64(n)
	}
	return float64((e.nn + p.PP - 1) / p.PP)
}
