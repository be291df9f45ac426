package spec

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParsePlan(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"dp=2,tp=4,pp=1,mb=2,ga=8,zero=1,recompute=full", "dp=2,tp=4,pp=1,mb=2,ga=8,zero=1,recompute=full"},
		{"tp=4", "dp=1,tp=4,pp=1,mb=1,ga=1"},
		{" DP = 2 , sp=true,tp=2", "dp=2,tp=2,pp=1,mb=1,ga=1,sp=1"},
		{"pp=4,vp=2,ga=8,precision=bf16,offload=optimizer,zero=0,recompute=none", "dp=1,tp=1,pp=4,vp=2,mb=1,ga=8,offload=optimizer,precision=bf16"},
		{"dp=4,ps=2,mb=8,async=true", "dp=4,tp=1,pp=1,ps=2,async=1,mb=8,ga=1"},
		{"dp=4,ps=0,async=0", "dp=4,tp=1,pp=1,mb=1,ga=1"},
		{"pp=4,schedule=ZB-H1", "dp=1,tp=1,pp=4,schedule=zb-h1,mb=1,ga=1"},
		{"pp=4,schedule=1f1b", "dp=1,tp=1,pp=4,mb=1,ga=1"},
		{"dp=16,zero=3,shard=8", "dp=16,tp=1,pp=1,mb=1,ga=1,zero=3,shard=8"},
		{"dp=4,cp=2,zero=3,shard=8", "dp=4,tp=1,pp=1,cp=2,mb=1,ga=1,zero=3"}, // over all devices
	} {
		p, err := ParsePlan(tc.in)
		if err != nil {
			t.Errorf("%q: %v", tc.in, err)
		} else if p.String() != tc.want {
			t.Errorf("%q: %s, want %s", tc.in, p, tc.want)
		}
	}
}

func TestParsePlanNamesWhatIsWrong(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", "empty plan"},
		{"dp", `"dp" is not key=value`},
		{"dp=", `"dp=" is not key=value`},
		{"dp=0", "dp=0 is not a whole number"},
		{"dp=2,dp=3", "dp is given twice"},
		{"tp=99999999999", "tp=99999999999 is not a whole number"},
		{"ps=-1", "ps=-1 is not a whole number in 0..1048576"},
		{"async=maybe", "async=maybe is not 0 or 1"},
		{"zero=4", "zero=4 is not 0, 1, 2 or 3"},
		{"shard=-1", "shard=-1 is not a whole number in 0..1048576"},
		{"schedule=dualpipe", "schedule=dualpipe is not one of [1f1b gpipe zb-h1 zb-h2 zb-v dualpipe-v]"},
		{"recompute=some", "recompute=some is not one of [none selective full]"},
		{"workers=4", `unknown key "workers"`},
		{"dp=1048576,tp=1048576,pp=1048576,cp=16", "devices, want at most 1048576"},
		{"dp=1048576,tp=2", "2097152 devices, want at most 1048576"},
	} {
		_, err := ParsePlan(tc.in)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.in, err, tc.want)
		}
	}
}

// drawPlan draws any plan that ParsePlan can express.
func drawPlan(t *rapid.T) Plan {
	deg, n := rapid.IntRange(1, 4096), rapid.IntRange(1, 32) // at most 32^4 devices
	return Plan{
		DP: n.Draw(t, "dp"), TP: n.Draw(t, "tp"), PP: n.Draw(t, "pp"), CP: n.Draw(t, "cp"), EP: deg.Draw(t, "ep"),
		VirtualStages: deg.Draw(t, "vp"), MicroBatch: deg.Draw(t, "mb"), AccumSteps: deg.Draw(t, "ga"),
		ParamServers:     rapid.IntRange(0, 64).Draw(t, "ps"),
		Async:            rapid.Bool().Draw(t, "async"),
		Schedule:         rapid.SampledFrom(append(Schedules(), "")).Draw(t, "schedule"),
		Shard:            rapid.IntRange(0, 64).Draw(t, "shard"),
		ZeRO:             rapid.IntRange(0, 3).Draw(t, "zero"),
		Offload:          rapid.SampledFrom([]Offload{OffloadNone, OffloadOptimizer, OffloadParams}).Draw(t, "offload"),
		Recompute:        rapid.SampledFrom([]Recompute{RecomputeNone, RecomputeSelective, RecomputeFull}).Draw(t, "recompute"),
		SequenceParallel: rapid.Bool().Draw(t, "sp"),
		Precision:        rapid.SampledFrom(append(Precisions(), "")).Draw(t, "precision"),
	}
}

func TestPlanRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		got, err := ParsePlan(p.String())
		if err != nil {
			t.Fatal(err)
		}
		if got != p.Normal() {
			t.Fatalf("%s came back as %s", p, got)
		}
	})
}

func FuzzParsePlan(f *testing.F) {
	f.Add("dp=2,tp=4,pp=1,mb=2,ga=8,zero=1,recompute=full")
	f.Add("dp=1,sp=1,tp=8,precision=fp8")
	f.Add("dp=16,zero=3,shard=8")
	f.Add("pp=4,ga=8,schedule=zb-v")
	f.Add("=,=")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePlan(s)
		if err != nil {
			return
		}
		again, err := ParsePlan(p.String())
		if err != nil || again != p {
			t.Fatalf("%q parsed to %s, which parses to %s, %v", s, p, again, err)
		}
		_ = p.Check(Model{Name: "m", Layers: 12, Hidden: 768, Heads: 12, FFN: 3072})
	})
}

func TestCheckRefusesNegativeDegrees(t *testing.T) {
	for _, p := range []Plan{{DP: -1}, {TP: -2}, {VirtualStages: -1}, {MicroBatch: -1}, {AccumSteps: -8}} {
		if err := p.Check(Model{Name: "m"}); err == nil || !strings.Contains(err.Error(), "is below 1") {
			t.Errorf("%+v: %v", p, err)
		}
	}
	p := Plan{ParamServers: -1}
	if err := p.Check(Model{Name: "m"}); err == nil || !strings.Contains(err.Error(), "ps=-1 is below 0") {
		t.Errorf("%+v: %v", p, err)
	}
	for _, p := range []Plan{p, {ParamServers: maxDegree + 1}, {Shard: -1}, {Shard: maxDegree + 1}} {
		if err := p.CheckBounds(); err == nil {
			t.Errorf("%+v is within bounds", p)
		}
	}
}

func TestCheckNamesTheRule(t *testing.T) {
	gpt2 := Model{Name: "gpt2", Layers: 12, Hidden: 768, Heads: 12, FFN: 3072}
	gqa := Model{Name: "gqa", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336}
	moe := Model{Name: "moe", Layers: 48, Hidden: 2048, Heads: 32, KVHeads: 4, FFN: 6144, Experts: 128, ExpertsPerToken: 8}
	for _, tc := range []struct {
		m          Model
		plan, want string // want "" = legal
	}{
		{gpt2, "tp=16", "tp=16 does not divide 12 heads"},
		{gpt2, "tp=4", ""},
		{gqa, "tp=16", ""}, // the 8 key/value heads are replicated
		{gqa, "tp=8,dp=2", ""},
		{Model{Name: "gqa3", Heads: 12, KVHeads: 3}, "tp=4", "tp=4 is not a multiple of 3 key/value heads"},
		{Model{Name: "gqa3", Heads: 12, KVHeads: 3}, "tp=6", ""},
		{gpt2, "pp=5", ""},           // uneven stages
		{gpt2, "pp=5,vp=2,ga=5", ""}, // uneven chunks
		{gpt2, "pp=7,vp=2,ga=7", ""}, // embedding and head are separate chunks
		{gpt2, "pp=5,vp=3,ga=5", "pp=5 x vp=3 exceeds 12 layers plus embedding and head"},
		{gpt2, "pp=13", "pp=13 x vp=1 exceeds 12 layers"},
		{gpt2, "pp=2,vp=3,ga=4", ""},
		{gpt2, "pp=2,vp=3,ga=3", "vp=3 needs ga=3 to be a multiple of pp=2"},
		{gpt2, "vp=2", "vp=2 needs pp > 1"},
		{gpt2, "ep=2,dp=2", "ep=2 needs a mixture of experts"},
		{moe, "ep=8,dp=8", ""},
		{moe, "ep=8,dp=4", "ep=8 does not divide the 4 ranks of dp x cp x tp"},
		{moe, "ep=3,dp=3", "ep=3 does not divide 128 experts"},
		{gpt2, "sp=1", "sp=1 needs tp > 1"},
		{gpt2, "offload=params,zero=2", "offload=params needs zero=3, not 2"},
		{gpt2, "zero=3,pp=2", "zero=3 with pp=2"},
		{gpt2, "pp=4,schedule=1f1b", ""},
		{gpt2, "schedule=1f1b", ""},
		{gpt2, "pp=4,schedule=gpipe,recompute=full", ""},
		{gpt2, "pp=5,schedule=zb-h1", ""},
		{gpt2, "pp=2,schedule=zb-h2,recompute=selective", ""},
		{gpt2, "pp=6,schedule=zb-v", ""},
		{gpt2, "pp=4,schedule=zb-v", "schedule=zb-v has two chunks per stage, but 2 x pp=4 does not divide 12 layers"},
		{gpt2, "pp=3,ga=6,schedule=dualpipe-v", ""},
		{gpt2, "pp=3,ga=5,schedule=dualpipe-v", "schedule=dualpipe-v needs 2 x pp=3 micro-batches or more, not ga=5"},
		{gpt2, "pp=4,ga=8,schedule=dualpipe-v", "schedule=dualpipe-v has two chunks per stage, but 2 x pp=4 does not divide 12 layers"},
		{gpt2, "pp=3,ga=6,schedule=dualpipe-v,recompute=full", "schedule=dualpipe-v needs recompute=none or selective"},
		{gpt2, "schedule=zb-h1", "schedule=zb-h1 needs pp > 1"},
		{gpt2, "schedule=gpipe", "schedule=gpipe needs pp > 1"},
		{gpt2, "pp=2,vp=3,ga=4,schedule=zb-h1", "schedule=zb-h1 needs vp=1, not 3"},
		{gpt2, "pp=2,schedule=zb-h1,recompute=full", "schedule=zb-h1 needs recompute=none or selective"},
		{gpt2, "dp=16,zero=1,shard=8", ""},
		{gpt2, "dp=16,zero=3,shard=2", ""},
		{gpt2, "dp=16,zero=3,shard=16", ""},
		{gpt2, "dp=8,cp=2,zero=3,shard=4", ""},
		{gpt2, "dp=16,shard=8", "shard=8 needs zero >= 1"},
		{gpt2, "dp=16,zero=3,shard=1", "shard=1 is not a divisor of dp x cp=16 above 1"},
		{gpt2, "dp=16,zero=3,shard=32", "shard=32 is not a divisor of dp x cp=16 above 1"},
		{gpt2, "dp=16,zero=3,shard=6", "shard=6 is not a divisor of dp x cp=16 above 1"},
		{gpt2, "dp=4,ps=2", ""},
		{gpt2, "dp=4,ps=2,async=1", ""},
		{gpt2, "dp=4,async=1", "async=1 needs ps > 0"},
		{gpt2, "dp=4,tp=2,ps=2", "ps=2 needs tp, pp, cp and ep of 1"},
		{gpt2, "dp=4,cp=2,ps=2", "ps=2 needs tp, pp, cp and ep of 1"},
		{gpt2, "dp=4,ps=2,zero=1", "ps=2 needs zero=0, not 1"},
		{gpt2, "dp=4,ps=2,offload=optimizer", "ps=2 needs offload=none, not optimizer"},
		{Model{Name: "opaque"}, "tp=7,pp=3", ""}, // an unknown count breaks no rule
	} {
		p, err := ParsePlan(tc.plan)
		if err != nil {
			t.Fatal(err)
		}
		err = p.Check(tc.m)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s %s: %v, want legal", tc.m.Name, tc.plan, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s %s: %v, want %q", tc.m.Name, tc.plan, err, tc.want)
		}
	}
}

func TestCheckRefusesUnknownSchedules(t *testing.T) {
	p := Plan{PP: 2, Schedule: "dualpipe"}
	if err := p.Check(Model{Name: "m"}); err == nil || !strings.Contains(err.Error(), "schedule=dualpipe is not one of") {
		t.Errorf("%v", err)
	}
}

func TestStageLayers(t *testing.T) {
	for _, tc := range []struct {
		layers, pp int
		middle     bool
		want       []int
	}{
		{32, 1, false, []int{32}},
		{8, 2, false, []int{4, 4}},                                 // 2 also divides 10, but no layers remain
		{70, 12, false, []int{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5}}, // BLOOM
		{126, 8, false, []int{15, 16, 16, 16, 16, 16, 16, 15}},     // Llama 3 405B
		{9, 2, false, []int{5, 4}},
		{10, 3, false, []int{3, 4, 3}},
		{11, 3, false, []int{4, 4, 3}},
		{9, 4, false, []int{2, 2, 3, 2}},
		{3, 3, false, []int{1, 1, 1}},
		{24, 4, true, []int{6, 7, 7, 4}}, // as counted by hand from LiBai's code
		{48, 8, true, []int{6, 6, 7, 7, 7, 7, 7, 1}},
		{8, 4, true, []int{2, 2, 3, 1}},
		{24, 2, true, []int{12, 12}},
		{4, 4, true, []int{1, 1, 1, 1}},
		{9, 4, true, []int{2, 2, 3, 2}},
	} {
		p := Plan{PP: tc.pp}
		got := make([]int, tc.pp)
		for i := range got {
			got[i] = p.StageLayers(tc.layers, i, tc.middle)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%d layers on %d stages, middle %v: %v, want %v", tc.layers, tc.pp, tc.middle, got, tc.want)
		}
	}
}

// TestChunkLayers lists chunks in the order in which the model passes them: the first chunk of all stages, then
// the second.
func TestChunkLayers(t *testing.T) {
	for _, tc := range []struct {
		layers, pp, vp int
		want           []int
	}{
		{12, 2, 3, []int{2, 2, 2, 2, 2, 2}},
		{12, 7, 2, []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}},
		{126, 8, 4, []int{3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3}}, // Llama 3 405B
		{61, 4, 4, []int{3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3}},
	} {
		p := Plan{PP: tc.pp, VirtualStages: tc.vp}
		var got []int
		for chunk := range tc.vp {
			for stage := range tc.pp {
				got = append(got, p.ChunkLayers(tc.layers, stage, chunk))
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%d layers on %d stages of %d chunks: %v, want %v", tc.layers, tc.pp, tc.vp, got, tc.want)
		}
	}
}

// TestChunkLayersAddUp: the chunks of a stage have its layers in total, and only the chunks with the embedding
// and the head of a legal plan may be empty.
func TestChunkLayersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pp, vp := rapid.IntRange(2, 20).Draw(t, "pp"), rapid.IntRange(2, 12).Draw(t, "vp")
		p := Plan{DP: 1, PP: pp, VirtualStages: vp, MicroBatch: 1, AccumSteps: pp}
		layers := rapid.IntRange(pp*vp-2, 400).Draw(t, "layers")
		if err := p.Check(Model{Name: "m", Layers: layers}); err != nil {
			t.Fatal(err)
		}
		for stage := range pp {
			sum := 0
			for chunk := range vp {
				n := p.ChunkLayers(layers, stage, chunk)
				ends := stage == 0 && chunk == 0 || stage == pp-1 && chunk == vp-1
				if n < 1 && !ends {
					t.Fatalf("%d layers: chunk %d of stage %d is empty", layers, chunk, stage)
				}
				sum += n
			}
			if want := p.StageLayers(layers, stage, false); sum != want {
				t.Fatalf("%d layers: %d on the chunks of stage %d, want %d", layers, sum, stage, want)
			}
		}
	})
}

func TestStageLayersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{PP: rapid.IntRange(1, 200).Draw(t, "pp")}
		layers := rapid.IntRange(p.PP, 400).Draw(t, "layers")
		sum, first, last := 0, p.StageLayers(layers, 0, false), p.StageLayers(layers, p.PP-1, false)
		for i := range p.PP {
			n := p.StageLayers(layers, i, false)
			if n < last || n > last+1 || n < first && i < p.PP-1 {
				t.Fatalf("%d layers on stage %d, %d on the first, %d on the last", n, i, first, last)
			}
			sum += n
		}
		if sum != layers {
			t.Fatalf("%d layers in all, want %d", sum, layers)
		}
	})
}
