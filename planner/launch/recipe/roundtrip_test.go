package recipe

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch"
)

// What package launch writes is read back as the same plan and network, and every key is known.
func TestRoundTrip(t *testing.T) {
	read := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		for _, f := range launch.Frameworks() {
			s, err := f.Emit(c)
			if errors.Is(err, launch.ErrCannotExpress) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			r, err := Read(f.File, []byte(s.Text), Options{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", f.Name, err, s.Text)
			}
			if r.Format != f.Name || len(r.Unknown) > 0 || len(r.Problems) > 0 {
				t.Fatalf("read as %s, unknown %v, problems %v\n%s", r.Format, r.Unknown, r.Problems, s.Text)
			}
			r.SetLayers(c.Model.Layers)
			devices := 0
			if f.Name == "deepspeed" || f.Name == "torchtitan" && c.Plan.ZeRO == 0 {
				devices = c.Shape.Total()
			}
			got, _, err := r.Plan(devices)
			if err != nil {
				t.Fatalf("%s: %v\n%s", f.Name, err, s.Text)
			}
			want := c.Plan.Normal()
			if want.Precision == spec.TF32 { // the environment decides, not the file
				want.Precision = spec.FP32
			}
			if want.Precision == "" {
				want.Precision = got.Precision
			}
			if got.Precision == "" && want.Precision == spec.FP32 { // no format is 32 bits
				got.Precision = spec.FP32
			}
			if got != want {
				t.Fatalf("%s: %s came back as %s\n%s", f.Name, want, got, s.Text)
			}
			if m, _, ok := r.Network(0); ok && !sameNetwork(m, c.Model) {
				t.Fatalf("%s: %+v came back as %+v\n%s", f.Name, c.Model, m, s.Text)
			}
			read[f.Name]++
		}
	})
	t.Logf("files read: %v", read)
	for _, f := range launch.Frameworks() {
		if read[f.Name] == 0 && !testing.Short() {
			t.Errorf("%s: no file read", f.Name)
		}
	}
}

// sameNetwork compares the widths of networks. A tokenizer adds a token to the vocabulary.
func sameNetwork(a, b spec.Model) bool {
	return a.Layers == b.Layers && a.Hidden == b.Hidden && a.Heads == b.Heads && a.KV() == b.KV() && a.Head() == b.Head() && a.FFN == b.FFN &&
		(a.Vocab == b.Vocab || a.Vocab == b.Vocab-1 || a.Vocab == 0) && a.GatedMLP == b.GatedMLP && a.TiedEmbeddings == b.TiedEmbeddings &&
		a.Experts == b.Experts && a.ExpertsPerToken == b.ExpertsPerToken && a.ExpertFFN == b.ExpertFFN && a.SharedExperts == b.SharedExperts && a.DenseLayers == b.DenseLayers && a.Kind == b.Kind
}

func drawConfig(t *rapid.T) spec.Config {
	name := rapid.SampledFrom([]string{"Llama3-8B", "Mixtral-8x7B", "Qwen3-30B-A3B", "GPT3-5B", "BERT-large", "DeepSeek-V2-Lite"}).Draw(t, "model")
	m, err := catalog.Model(name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := catalog.Accelerator("H100")
	if err != nil {
		t.Fatal(err)
	}
	p := drawPlan(t)
	if q := p.Normal(); q.Check(m) != nil || planner.Redundant(&q) != "" || planner.CannotOffload(&q) != "" {
		t.Skip("not legal")
	}
	shape := spec.Packed(p.Devices(), 8)
	return spec.Config{Model: m, Accelerator: a, Plan: p, Shape: shape}
}

func drawPlan(t *rapid.T) spec.Plan {
	pow := func(label string, most int) int { return 1 << rapid.IntRange(0, most).Draw(t, label) }
	p := spec.Plan{DP: pow("dp", 4), MicroBatch: pow("mb", 2), AccumSteps: pow("ga", 4)}
	if rapid.Bool().Draw(t, "split") {
		p.TP, p.PP, p.CP, p.EP, p.VirtualStages = pow("tp", 3), pow("pp", 3), pow("cp", 2), pow("ep", 4), pow("vp", 2)
		if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
			p.PP, p.VirtualStages = rapid.IntRange(2, 7).Draw(t, "stages"), 1
		}
		p.SequenceParallel = rapid.Bool().Draw(t, "sp")
	}
	if p.ZeRO = rapid.IntRange(0, 3).Draw(t, "zero"); p.ZeRO > 0 && rapid.Bool().Draw(t, "hsdp") {
		p.Shard = pow("shard", 4)
	}
	if rapid.IntRange(0, 3).Draw(t, "other schedule") == 0 {
		p.Schedule = rapid.SampledFrom(spec.Schedules()).Draw(t, "schedule")
	}
	p.Offload = rapid.SampledFrom([]spec.Offload{"", "", spec.OffloadOptimizer, spec.OffloadParams}).Draw(t, "offload")
	p.Recompute = rapid.SampledFrom([]spec.Recompute{"", spec.RecomputeSelective, spec.RecomputeFull}).Draw(t, "recompute")
	p.Precision = rapid.SampledFrom(spec.Precisions()).Draw(t, "precision")
	return p
}
