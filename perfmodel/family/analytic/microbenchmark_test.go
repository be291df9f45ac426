package analytic

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// core is a CPU core as package device describes it.
var core = spec.Accelerator{Name: "CPU test, 1 thread", Arch: "AVX-512", FP32: 100e9, BF16: 100e9, MemBytes: 16e9, MemBps: 10e9, HostBps: 10e9}

// invented returns micro-benchmarks of a core with constants k, each time off by 3 %.
func invented(t testing.TB, k *constants) spec.Microbenchmarks {
	t.Helper()
	b := spec.Microbenchmarks{Accelerator: core, Link: spec.Link{IntraBps: 1e9}, Framework: spec.FrameworkWorker}
	add := func(r spec.Microbenchmark) { r.Precision = spec.FP32; b.Rows = append(b.Rows, r) }
	for _, tokens := range []int{64, 256, 1024} {
		for _, width := range []int{64, 256, 512, 2048} {
			add(spec.Microbenchmark{Op: "gemm forward", Rows: tokens, Cols: width, Depth: 128})
			add(spec.Microbenchmark{Op: "gemm wgrad", Rows: tokens, Cols: 128, Depth: width})
		}
	}
	for _, seq := range []int{8, 64, 256} {
		m := spec.Model{Kind: spec.Decoder, Layers: 1, Hidden: 32, FFN: 128, Heads: 1, SeqLen: seq}
		add(spec.Microbenchmark{Op: "layer", Model: m, MicroBatch: 1})
		m.Hidden, m.Heads, m.FFN, m.Vocab = 256, 8, 1024, 2048
		add(spec.Microbenchmark{Op: "layer", Model: m, MicroBatch: 2})
		add(spec.Microbenchmark{Op: "attention", Model: m, MicroBatch: 2})
		add(spec.Microbenchmark{Op: "head", Model: m, MicroBatch: 2})
	}
	for _, n := range []float64{1e6, 4e6, 16e6} {
		add(spec.Microbenchmark{Op: "optimizer", Parameters: n})
		add(spec.Microbenchmark{Op: "accumulate", Parameters: n})
		add(spec.Microbenchmark{Op: "copy", Bytes: 8 * n})
		for _, op := range []string{"all-reduce", "all-gather", "send"} {
			add(spec.Microbenchmark{Op: op, Bytes: n, Ranks: 2})
		}
	}
	add(spec.Microbenchmark{Op: "step", Model: spec.Model{Kind: spec.Decoder, Layers: 1, Hidden: 16, FFN: 16, Heads: 1, Vocab: 64, SeqLen: 8}, MicroBatch: 1})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range b.Rows {
		p, err := partOf(&b, &b.Rows[i])
		if err != nil {
			t.Fatal(err)
		}
		b.Rows[i].Sec = []float64{p.seconds(k) * math.Exp(0.03*rng.NormFloat64())}
	}
	return b
}

// odd returns the constants of a machine that is unlike what is assumed of CPUs.
func odd() constants {
	k := base
	g := generationOf("AVX-512")
	k.shares[g].gemm *= 0.25
	k.waveHalf *= 0.05
	k.memShare *= 1.5
	k.optimizerBytes *= 1.6
	k.accumBytes *= 0.7
	k.launch[launchEager] *= 0.4
	k.fixedSec *= 0.2
	return k
}

// TestMicrobenchmarksRecover: constants that times were made from are found again, within a factor that is a few times the
// noise of the times, and their spread says how near.
func TestMicrobenchmarksRecover(t *testing.T) {
	truth := odd()
	b := invented(t, &truth)
	got, err := MeasuredConstants(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"gemm CPU": 0.25, "memory bandwidth": 1.5, "optimizer bytes": 1.6, "accumulation bytes": 0.7, "launch, eager": 0.4, "fixed": 0.2}
	for _, c := range got {
		w, ok := want[c.Name]
		if !ok {
			continue
		}
		delete(want, c.Name)
		if off := math.Abs(math.Log(c.Ratio / w)); off > 0.25 || off > 2.5*c.Spread {
			t.Errorf("%s moved by %.3f ±%.0f %%, want %g", c.Name, c.Ratio, 100*c.Spread, w)
		}
		if math.Abs(c.Measured/c.Assumed/c.Ratio-1) > 1e-9 {
			t.Errorf("%s: %g over %g is not %g", c.Name, c.Measured, c.Assumed, c.Ratio)
		}
	}
	for name := range want {
		t.Errorf("%s is not among %v", name, got)
	}
}

// TestCollectivesCount: collectives correct the links of GPUs; those of processes on CPUs correct nothing.
func TestCollectivesCount(t *testing.T) {
	b := spec.Microbenchmarks{Accelerator: core, Link: spec.Link{IntraBps: 1e11}, Framework: spec.FrameworkWorker}
	b.Rows = []spec.Microbenchmark{{Op: "copy", Bytes: 1e9, Sec: []float64{0.1}}}
	for _, bytes := range []float64{1e7, 1e8, 1e9} {
		b.Rows = append(b.Rows, spec.Microbenchmark{Op: "all-reduce", Ranks: 2, Bytes: bytes, Sec: []float64{bytes / 1e10}})
	}
	for arch, want := range map[string]bool{"AVX-512": false, "Hopper": true} {
		if b.Accelerator.Arch = arch; want {
			b.Accelerator.Name = "GPU test"
		}
		got, err := MeasuredConstants(&b)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(got, func(c Constant) bool { return strings.HasPrefix(c.Name, "ring share") }); (i >= 0) != want || want && got[i].Ratio > 0.5 {
			t.Errorf("%s: %+v", arch, got)
		}
		b.Accelerator.Name = core.Name
	}
}

// trained returns configurations of training on the core.
func trained() (out []spec.Config) {
	for _, hidden := range []int{64, 256} {
		for _, mb := range []int{1, 4} {
			for _, plan := range []spec.Plan{{MicroBatch: mb}, {DP: 2, MicroBatch: mb, AccumSteps: 2}, {TP: 2, MicroBatch: mb}, {PP: 2, MicroBatch: mb, AccumSteps: 4}} {
				plan.Precision = spec.FP32
				m := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 4, Hidden: hidden, FFN: 4 * hidden, Heads: hidden / 32, Vocab: 1024, SeqLen: 128}
				plan = plan.Normal()
				out = append(out, spec.Config{Model: m, Accelerator: core, Plan: plan, Framework: spec.FrameworkWorker, Link: spec.Link{IntraBps: 1e9},
					Shape: spec.Shape{Devices: map[int]string{1: "1", 2: "2"}[plan.Devices()]}})
			}
		}
	}
	return out
}

// TestMeasuredPredicts: with micro-benchmarks, predictions without rows are those of the machine, and without them far off.
func TestMeasuredPredicts(t *testing.T) {
	truth := odd()
	b := invented(t, &truth)
	text, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	machine := *unknown
	machine.sites = map[Site]*constants{}
	before, after := 0.0, 0.0
	for _, c := range trained() {
		machine.sites[SiteOf(&c)] = &truth
		want, err := machine.Predict(&c, "")
		if err != nil {
			t.Fatal(err)
		}
		off := func() float64 {
			got, err := (&Model{}).Predict(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return math.Abs(math.Log(got.Throughput / want.Throughput))
		}
		before += off() / float64(len(trained()))
		c.Accelerator.Measured = text
		after += off() / float64(len(trained()))
	}
	if before < 0.5 || after > 0.1 {
		t.Errorf("mean error %.2f before and %.2f after, want above 0.5 and below 0.1", before, after)
	}
	t.Logf("mean error %.2f before and %.3f after", before, after)
}

// TestMeasuredPrior: a fit begins at the measured constants, with their spread; a site keeps the ones it was fitted with.
func TestMeasuredPrior(t *testing.T) {
	truth := odd()
	b := invented(t, &truth)
	text, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	rows := []spec.Measurement{{Config: trained()[0]}}
	var plain, measured Layout
	plain.Add(rows)
	rows[0].Config.Accelerator.Measured = text
	measured.Add(rows)
	sd := map[string]float64{}
	for i, p := range params {
		sd[p.name] = math.Sqrt(Shipped().DistributionOf(&measured).Cov.At(i, i))
		if was := math.Sqrt(Shipped().DistributionOf(&plain).Cov.At(i, i)); sd[p.name] > was*(1+1e-12) || p.name == "gemm CPU" && sd[p.name] > was/3 {
			t.Errorf("%s has the standard deviation %g, %g before", p.name, sd[p.name], was)
		}
	}
	g := generationOf("AVX-512")
	k := Shipped().PhysicsAt(&measured, make([]float64, measured.Size())).sites[measured.Sites[0]]
	if r := k.shares[g].gemm / truth.shares[g].gemm; math.Abs(r-1) > 0.2 {
		t.Errorf("the fit begins with %.2f times the true gemm share", r)
	}
	fitted := Shipped().PhysicsAt(&plain, make([]float64, plain.Size()))
	one, errOne := fitted.Predict(&rows[0].Config, "")
	rows[0].Config.Accelerator.Measured = ""
	two, errTwo := fitted.Predict(&rows[0].Config, "")
	if errOne != nil || errTwo != nil || one.Throughput != two.Throughput {
		t.Errorf("%g and %g samples/s, %v, %v: a fit from before the micro-benchmarks changed", one.Throughput, two.Throughput, errOne, errTwo)
	}
}

// TestMeasuredWithoutSource: what was measured alone takes the place of what a prior says, which therefore does not matter.
func TestMeasuredWithoutSource(t *testing.T) {
	a := spec.Accelerator{Name: "B200", Arch: "Blackwell", BF16: 2250e12, MemBps: 8e12, MemBytes: 180e9}
	b := spec.Microbenchmarks{Accelerator: a, Framework: "Megatron Core"}
	for _, width := range []int{1024, 4096, 8192, 57344} {
		for _, depth := range []int{1024, 8192, 28672} {
			b.Rows = append(b.Rows, spec.Microbenchmark{Op: "gemm forward", Precision: spec.BF16, Rows: 4096, Cols: width, Depth: depth,
				Sec: []float64{2 * 4096 * float64(depth) * float64(width) / 1e15}})
		}
	}
	text, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	a.Measured = text
	c := spec.Config{Accelerator: a, Framework: "Megatron Core", SeqLen: 4096, Shape: spec.Shape{Devices: "1"}, Plan: spec.Plan{MicroBatch: 1, Precision: spec.BF16},
		Model: spec.Model{Name: "m", Kind: spec.Decoder, Layers: 12, Hidden: 8192, FFN: 28672, GatedMLP: true, Heads: 64, KVHeads: 8, Vocab: 128256}}
	of := func(share float64) float64 {
		k := *Shipped().Physics.any
		for i := range k.shares {
			k.shares[i].gemm *= share
		}
		ph := &Physics{any: &k, Memory: unknown.Memory}
		x, err := ph.Explain(&c)
		if err != nil {
			t.Fatal(err)
		}
		return x.Compute
	}
	usual, fast := of(1), of(1.3)
	c.Accelerator.Measured = ""
	if plain := of(1); math.Abs(fast/usual-1) > 0.01 || usual < 1.1*plain {
		t.Errorf("%.3f s with one prior and %.3f with another, %.3f without the figures of the devices", usual, fast, plain)
	}
}

func TestMicrobenchmarksWithoutPrediction(t *testing.T) {
	b := spec.Microbenchmarks{Accelerator: core, Framework: spec.FrameworkWorker, Rows: []spec.Microbenchmark{
		{Op: "copy", Bytes: 1e6, Sec: []float64{1}}, {Op: "copy", Sec: []float64{1}}}}
	if _, err := MeasuredConstants(&b); err == nil || !strings.Contains(err.Error(), "micro-benchmark 1, copy: its sizes give 0 s") {
		t.Errorf("%v", err)
	}
	b.Accelerator.MemBps = 0
	if _, err := MeasuredConstants(&b); err == nil || !strings.Contains(err.Error(), "bytes/s of memory bandwidth") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", "{", `{"rows":[{}]}`} {
		if measurementsOf(text) != nil {
			t.Errorf("%q has measurements", text)
		}
	}
}

// TestConcurrentMeasurementsAreOne: all callers have the same measurements of a text, also the first ones at the same time. Sites of
// equal devices are known by that.
func TestConcurrentMeasurementsAreOne(t *testing.T) {
	truth := odd()
	b := invented(t, &truth)
	b.At = time.Unix(1, 0) // a text that no other test has
	text, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var got [8]*measurements
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = measurementsOf(text) })
	}
	wg.Wait()
	for _, m := range got {
		if m == nil || m != got[0] {
			t.Fatalf("%p beside %p", m, got[0])
		}
	}
}
