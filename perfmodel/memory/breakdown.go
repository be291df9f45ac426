package memory

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Breakdown is the peak memory of the fullest device, in bytes, by use.
type Breakdown struct {
	Parameters  float64 // weights kept between steps
	Gradients   float64
	Optimizer   float64 // fp32 master weights and moments, and temporary memory of the optimizer step
	Gathered    float64 // full parameters and gradients of the units that ZeRO-3 has gathered
	Activations float64 // kept for the backward pass, all micro-batches in flight
	Working     float64 // the larger of: one layer's backward pass, the loss
	Buffers     float64 // communication buckets and pipeline receive buffers
	Overhead    float64 // what no counted tensor uses: the allocator's unused blocks, device context, communicators
	Outside     float64 // part of Overhead that the framework's allocator does not manage: context, communicators

	HostBytes float64 // host memory per device, for offload; not part of Total
	Stage     int     // pipeline stage of this device, from 0
	At        Point   // of the step

	// LogSD is the standard deviation of log(measured / Total), from the
	// calibration.
	LogSD float64
}

// Point is the point of a step at which a device's memory peaks; "" where layers are not known.
type Point string

// Points of a step.
const (
	AtLoss    Point = "loss"
	AtLayer   Point = "backward pass of a layer"
	AtDense   Point = "backward pass of a layer without experts"
	AtExperts Point = "backward pass of a layer with experts"
	AtFirst   Point = "backward pass of the first layer"
)

// Total returns all bytes in use on the device, as nvidia-smi shows them. Outside is in Overhead.
func (b Breakdown) Total() float64 { return b.tensors() + b.Overhead }

// tensors is Allocated.
func (b *Breakdown) tensors() float64 {
	return b.Parameters + b.Gradients + b.Optimizer + b.Gathered + b.Activations + b.Working + b.Buffers
}

// Reserved returns the bytes that the framework's allocator holds: torch.cuda.max_memory_reserved.
func (b Breakdown) Reserved() float64 { return b.Of(stack.Reserved) }

// Allocated returns the bytes of tensors: torch.cuda.max_memory_allocated.
func (b Breakdown) Allocated() float64 { return b.Of(stack.Allocated) }

// SetMemory sets the memory of p to b.
func (b *Breakdown) SetMemory(p *spec.Prediction) {
	tensors := b.tensors()
	p.MemoryBytes, p.AllocatedBytes, p.ReservedBytes = tensors+b.Overhead, tensors, tensors+(b.Overhead-b.Outside)
}

// Of returns the bytes that a figure of peak memory counts; "" counts as Device.
func (b Breakdown) Of(kind stack.Memory) float64 { return b.only(kind).Total() }

// only returns b without what a figure of peak memory does not count.
func (b Breakdown) only(kind stack.Memory) Breakdown {
	switch kind {
	case stack.Allocated:
		b.Overhead, b.Outside = 0, 0
	case stack.Reserved:
		b.Overhead, b.Outside = b.Overhead-b.Outside, 0
	}
	return b
}

// add adds every part of c times f.
func (b *Breakdown) add(c *Breakdown, f float64) {
	b.Parameters += f * c.Parameters
	b.Gradients += f * c.Gradients
	b.Optimizer += f * c.Optimizer
	b.Gathered += f * c.Gathered
	b.Activations += f * c.Activations
	b.Working += f * c.Working
	b.Buffers += f * c.Buffers
	b.Overhead += f * c.Overhead
	b.Outside += f * c.Outside
	b.HostBytes += f * c.HostBytes
}

// scaled returns b with the parts of Total times f.
func (b Breakdown) scaled(f float64) Breakdown {
	out := Breakdown{HostBytes: b.HostBytes, Stage: b.Stage, At: b.At, LogSD: b.LogSD}
	b.HostBytes = 0
	out.add(&b, f)
	return out
}

// geometricMean is the weighted geometric mean of breakdowns, with the spread between them.
type geometricMean struct {
	sum               Breakdown // weighted
	log, square, most float64
}

func (g *geometricMean) add(b *Breakdown, w float64) {
	if w > g.most {
		g.most, g.sum.Stage, g.sum.At = w, b.Stage, b.At
	}
	g.sum.add(b, w)
	l := math.Log(b.Total())
	g.log += w * l
	g.square += w * (l*l + b.LogSD*b.LogSD)
}

func (g *geometricMean) breakdown() Breakdown {
	out := g.sum.scaled(math.Exp(g.log) / g.sum.Total())
	out.LogSD = math.Sqrt(max(g.square-g.log*g.log, 0))
	return out
}

// HostTotal returns the host memory in bytes that the devices of one node need
// together.
func (b Breakdown) HostTotal(devices int) float64 { return b.HostBytes * float64(devices) }

// Part is one named use of memory, in bytes.
type Part struct {
	Name  string  `json:"name"`
	Bytes float64 `json:"bytes"`
}

// Parts returns the parts of Total, largest first.
func (b Breakdown) Parts() []Part {
	parts, n := b.sorted(math.Inf(-1))
	return parts[:n]
}

// sorted returns the n parts of at least so many bytes, largest first.
func (b *Breakdown) sorted(least float64) (out [8]Part, n int) {
	for _, p := range [...]Part{
		{"parameters", b.Parameters}, {"gradients", b.Gradients}, {"optimizer", b.Optimizer},
		{"gathered", b.Gathered}, {"activations", b.Activations}, {"working set", b.Working},
		{"buffers", b.Buffers}, {"overhead", b.Overhead},
	} {
		if !(p.Bytes >= least) {
			continue
		}
		k := n // by insertion: there are few
		for ; k > 0 && p.Bytes > out[k-1].Bytes; k-- {
			out[k] = out[k-1]
		}
		out[k], n = p, n+1
	}
	return out, n
}

// String lists the parts of at least 0.05 GiB, largest first, with their size in GiB: "optimizer 48.6,
// parameters 16.2".
func (b Breakdown) String() string {
	var buf [160]byte
	return string(b.appendText(buf[:0]))
}

func (b *Breakdown) appendText(out []byte) []byte {
	parts, n := b.sorted(0.05 * GiB)
	for i, p := range parts[:n] {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(append(out, p.Name...), ' ')
		out = appendTenths(out, p.Bytes/GiB)
	}
	return out
}

// Misfit describes, for messages, a plan that needs more than budget, the Budget of a device of memBytes, with the parts
// of its memory.
func (b *Breakdown) Misfit(budget, memBytes float64) string {
	var buf [320]byte
	out := appendMisfit(buf[:0], b.Total(), budget, memBytes)
	return string(b.appendText(append(out, ": "...)))
}
