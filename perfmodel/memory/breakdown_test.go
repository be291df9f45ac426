package memory_test

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// A prediction has the three figures of a breakdown: tensors, and with them the allocator's unused blocks, and with these
// what the allocator does not manage.
func TestSetMemory(t *testing.T) {
	b := memory.Breakdown{Parameters: 1, Gradients: 2, Optimizer: 4, Gathered: 8, Activations: 16, Working: 32, Buffers: 64, Overhead: 384, Outside: 256}
	var p spec.Prediction
	if b.SetMemory(&p); p.AllocatedBytes != 127 || p.ReservedBytes != 255 || p.MemoryBytes != 511 {
		t.Errorf("%+v, want 127, 255 and 511 bytes", p)
	}
	c := spec.Config{Model: spec.Model{Layers: 2, Hidden: 64, Heads: 4, FFN: 256, Vocab: 1000, SeqLen: 128}, Plan: spec.Plan{DP: 8, MicroBatch: 2}}
	b, err := memory.Estimate(c)
	if b.SetMemory(&p); err != nil || !(0 < p.AllocatedBytes && p.AllocatedBytes < p.ReservedBytes && p.ReservedBytes < p.MemoryBytes) || math.Abs(p.MemoryBytes-p.ReservedBytes-b.Outside) > 1 {
		t.Errorf("%+v of %+v, %v", p, b, err)
	}
}
