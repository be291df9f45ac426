package memory

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// oddVocab is a model with a vocabulary that some stacks pad.
func oddVocab() spec.Config {
	return spec.Config{Model: spec.Model{Name: "odd", Kind: spec.Decoder, Layers: 8, Hidden: 1024, FFN: 4096, Heads: 16, Vocab: 50257, SeqLen: 1024},
		Accelerator: spec.Accelerator{Name: "A100", Arch: "ampere", MemBytes: 80e9}, Shape: spec.NewShape(8)}
}

// TestAtSeq: an estimator at another length is that of the configuration with this length.
func TestAtSeq(t *testing.T) {
	counted := oddVocab()
	counted.Model = spec.Model{Name: "counted", Kind: spec.Opaque, ParamCount: 1e9} // no guess at its shape
	for _, c := range []spec.Config{oddVocab(), counted} {
		c.SeqLen = 2048
		e, err := For(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, seq := range []int{0, 512, 1024, 8192} {
			c.SeqLen = seq
			fresh, err := For(c)
			if err != nil {
				t.Fatal(err)
			}
			moved := e.AtSeq(seq)
			p := spec.Plan{DP: 8, MicroBatch: 2, ZeRO: 1}
			if got, want := moved.Plan(p), fresh.Plan(p); got != want {
				t.Errorf("%s at %d tokens: %+v, want %+v", c.Model.Name, seq, got, want)
			}
		}
	}
}

// TestFixed: a fixed plan has the memory, and the verdict, of the plan at every length.
func TestFixed(t *testing.T) {
	counted, guessed, alone := oddVocab(), oddVocab(), oddVocab()
	counted.Model = spec.Model{Name: "counted", Kind: spec.Opaque, ParamCount: 1e9}
	guessed.Model = spec.Model{Name: "guessed", Kind: spec.Decoder, ParamCount: 7e9, Vocab: 50257, SeqLen: 1024}
	alone.AloneStage = 2
	experts := oddVocab()
	experts.Model = mixed()
	full, open := 0, 0
	for _, c := range []spec.Config{oddVocab(), counted, guessed, alone, experts} {
		for _, c.Framework = range []string{"", "FSDP", "DeepSpeed@0.16", "Megatron Core@0.12", "torchtitan", "Megatron Core activations=offloaded"} {
			e, err := For(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"dp=8,zero=3", "dp=2,tp=4,recompute=full", "dp=2,tp=2,pp=2,mb=2,ga=8,recompute=selective", "tp=2,pp=4,ga=4,zero=1,precision=fp8", "dp=8,zero=2,offload=optimizer"} {
				if c.Plan, err = spec.ParsePlan(text); err != nil {
					t.Fatal(err)
				}
				fixed := e.Fix(c.Plan)
				for _, c.SeqLen = range []int{0, 512, 1024, 65536, 262144} {
					at := e.AtSeq(c.SeqLen)
					got, want := fixed.At(c.SeqLen), at.Plan(c.Plan)
					if got != want {
						t.Fatalf("%s, %q, %s at %d tokens: %+v, want %+v", c.Model.Name, c.Framework, text, c.SeqLen, got, want)
					}
					verdict := fixed.Open(&c, &got)
					if want, _ := at.Open(&c, &want, ""); verdict != want {
						t.Errorf("%s, %q, %s at %d tokens: %s, want %s", c.Model.Name, c.Framework, text, c.SeqLen, verdict, want)
					}
					if verdict != Fits {
						full++
					}
					if len(fixed.others) > 0 {
						open++
					}
				}
			}
		}
	}
	if full < 50 || open < 50 {
		t.Errorf("%d do not fit and %d have alternatives, want 50 of both at least", full, open)
	}
}

// TestOpaqueAtSeq: the activations of a model that is known by its parameters grow with the tokens of a sample, but for a part of a thousandth.
func TestOpaqueAtSeq(t *testing.T) {
	c := oddVocab()
	c.Model, c.SeqLen = spec.Model{Name: "counted", Kind: spec.Opaque, ParamCount: 1e9}, 2048
	e, err := For(c)
	if err != nil {
		t.Fatal(err)
	}
	p, long := spec.Plan{DP: 8, MicroBatch: 2}, e.AtSeq(8192)
	if got, want := long.Plan(p).Activations, 4*e.Plan(p).Activations; math.Abs(got/want-1) > 0.01 {
		t.Errorf("activations of 8192 tokens: %g bytes, want %g", got, want)
	}
}

// TestMeanOfStacks: the memory of an unknown stack is the weighted geometric mean of its choices, each counted by itself,
// though they have parameters in common.
func TestMeanOfStacks(t *testing.T) {
	e, err := For(oddVocab())
	if err != nil {
		t.Fatal(err)
	}
	pads := map[float64]bool{}
	for _, p := range []spec.Plan{{DP: 4, TP: 2, MicroBatch: 1, ZeRO: 1}, {DP: 2, TP: 2, PP: 2, MicroBatch: 1, AccumSteps: 4}} {
		p = p.Normal()
		log := 0.0
		for i, w := range e.of.Weight[stack.UseOf(&p)] {
			if w == 0 {
				continue
			}
			one, q := e, p
			one.variant = &e.rest[i]
			one.apply(&q)
			count := figure{what: fullest}
			b := count.of(&one, &q)
			log += w * math.Log(b.Total())
			pads[one.padded(&q)] = true
		}
		got, want := e.Plan(p), math.Exp(log)
		if math.Abs(got.Total()/want-1) > 1e-12 {
			t.Errorf("plan %s: %.9g bytes, want %.9g", p, got.Total(), want)
		}
	}
	if len(pads) < 2 {
		t.Errorf("no choice pads the vocabulary, or all do: %v", pads)
	}
}
