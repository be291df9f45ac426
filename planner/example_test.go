package planner_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// llama is Llama-3-8B, written out to show the fields of a model. Package
// datasets/catalog has it and many others.
var llama = spec.Model{
	Name: "Llama3-8B", Kind: spec.Decoder, SeqLen: 8192, // tokens of a sample
	Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336, GatedMLP: true, Vocab: 128256,
}

// h100 is a device by its datasheet: FLOP/s, bytes, bytes/s.
var h100 = spec.Accelerator{
	Name: "H100-80GB-SXM", Arch: "Hopper", FP32: 67e12, FP16: 989.4e12, BF16: 989.4e12,
	MemBytes: 80 << 30, MemBps: 3.35e12, ScaleUpBps: 450e9, HostBps: 63e9,
}

// a100 is another device.
var a100 = spec.Accelerator{
	Name: "A100-80GB-SXM", Arch: "Ampere", FP32: 19.5e12, FP16: 312e12, BF16: 312e12,
	MemBytes: 80 << 30, MemBps: 2.04e12, ScaleUpBps: 300e9, HostBps: 31.5e9,
}

// requestFor asks how to train llama on n H100s in nodes of eight, with a network of
// 400 Gbit/s a node, 128 samples a step.
func requestFor(n int) planner.Request {
	return planner.Request{
		Model: llama, GlobalBatch: 128,
		Framework: "Megatron Core", Accelerator: h100, Devices: n, Link: spec.Link{IntraBps: 450e9, InterBps: 50e9},
	}
}

// A Planner needs a performance model, here the analytic one, which needs no
// measurements.
func ExamplePlanner_Best() {
	pl := planner.New(&analytic.Model{}, planner.Options{})

	best, err := pl.Best(context.Background(), requestFor(8))
	if err != nil {
		log.Fatal(err)
	}
	predicted := best.Prediction // Throughput is in samples/s, Lo and Hi bound a 90 % interval
	fmt.Println(best.Config.Plan)
	fmt.Println("within the interval:", predicted.Lo < predicted.Throughput && predicted.Throughput < predicted.Hi)
	fmt.Println("within the memory:", predicted.MemoryBytes < h100.MemBytes)
	// Output:
	// dp=8,tp=1,pp=1,mb=1,ga=16,zero=3,precision=bf16
	// within the interval: true
	// within the memory: true
}

// Objective Goodput chooses the global batch too. The higher the gradient noise
// scale, the larger the best batch.
func ExamplePlanner_Best_goodput() {
	pl := planner.New(&analytic.Model{}, planner.Options{})

	r := requestFor(16)
	r.Objective = planner.Goodput
	r.GlobalBatch, r.MinBatch, r.MaxBatch = 0, 64, 4096

	var batches []int
	for _, r.NoiseScale = range []float64{100, 100_000} { // samples
		best, err := pl.Best(context.Background(), r)
		if err != nil {
			log.Fatal(err)
		}
		batches = append(batches, best.Config.Plan.GlobalBatch())
	}
	fmt.Println("with little noise:", batches[0])
	fmt.Println("with much noise more:", batches[1] > batches[0])
	// Output:
	// with little noise: 64
	// with much noise more: true
}

// The error of a request without an answer has the nearest plan and a remedy.
func ExampleInfeasibleError() {
	pl := planner.New(&analytic.Model{}, planner.Options{})

	r := requestFor(8)
	r.Plan = &spec.Plan{DP: 8, MicroBatch: 4, AccumSteps: 4, ZeRO: 3} // all else is 1

	_, err := pl.Best(context.Background(), r)
	var no *planner.InfeasibleError
	if errors.As(err, &no) { // as is errors.Is(err, planner.ErrInfeasible)
		fmt.Println("nearest:", no.Nearest.Config.Plan)
		fmt.Println("would fit:", no.Remedy.Change)
	}
	// Output:
	// nearest: dp=8,tp=1,pp=1,mb=4,ga=4,zero=3
	// would fit: mb=1,ga=16
}

// Rank lists the plans of a space, the best first. Options restrict the space, here to
// plans without offload and recompute.
func ExamplePlanner_Rank() {
	pl := planner.New(&analytic.Model{}, planner.Options{
		Space: planner.Enumerate{
			Offload:   []spec.Offload{spec.OffloadNone},
			Recompute: []spec.Recompute{spec.RecomputeNone},
		},
	})

	r := requestFor(8)
	r.Top = 5
	ranking, err := pl.Rank(context.Background(), r)
	if err != nil {
		log.Fatal(err)
	}
	best := ranking.Choices[0]
	fmt.Println(best.Config.Plan)
	for _, c := range ranking.Choices[1:] {
		fmt.Println("as fast or slower:", c.Prediction.Throughput <= best.Prediction.Throughput, c.Config.Plan.Recompute)
	}
	fmt.Println("all were looked at:", ranking.Evaluated == ranking.Fitting+ranking.Misses)
	// Output:
	// dp=8,tp=1,pp=1,mb=1,ga=16,zero=3,precision=bf16
	// as fast or slower: true none
	// as fast or slower: true none
	// as fast or slower: true none
	// as fast or slower: true none
	// all were looked at: true
}

// Curve is the throughput over the number of devices. A number that adds nothing,
// here five, keeps the plan of a smaller one.
func ExamplePlanner_Curve() {
	pl := planner.New(&analytic.Model{}, planner.Options{})

	curve, err := pl.Curve(context.Background(), requestFor(6))
	if err != nil {
		log.Fatal(err)
	}
	speed := 0.0
	for _, p := range curve.Points {
		now := p.Choice.Prediction.Throughput
		fmt.Printf("%d devices: %d used, faster: %v\n", p.Devices, p.Choice.Config.Plan.Devices(), now > speed)
		speed = now
	}
	// Output:
	// 1 devices: 1 used, faster: true
	// 2 devices: 2 used, faster: true
	// 3 devices: 3 used, faster: true
	// 4 devices: 4 used, faster: true
	// 5 devices: 4 used, faster: false
	// 6 devices: 6 used, faster: true
}

// Surface varies every resource of a job: here the device type, the number of
// devices and the CPU threads per device. The optimizer is offloaded, so that
// CPUs matter.
func ExamplePlanner_Surface() {
	pl := planner.New(&analytic.Model{}, planner.Options{})

	axes := planner.Axes{
		Machines: []planner.Machine{{Accelerator: a100}, {Accelerator: h100}},
		CPUs:     []int{1, 8},
	}
	s, err := pl.Surface(context.Background(), requestFor(4), axes)
	if err != nil {
		log.Fatal(err)
	}
	for m, machine := range axes.Machines {
		for _, n := range []int{1, 4} {
			one, _ := s.At(m, 0, 0, 0, n) // machine, network, host memory, CPUs: places on the axes
			eight, _ := s.At(m, 0, 0, 1, n)
			fmt.Printf("%d x %s: offload=%s, faster with 8 threads: %v\n", n, machine.Accelerator.Name,
				eight.Config.Plan.Offload, eight.Prediction.Throughput > one.Prediction.Throughput)
		}
	}
	fmt.Println("the fourth device adds something:", s.Marginal(1, 0, 0, 1, 4) > 0)
	// Output:
	// 1 x A100-80GB-SXM: offload=optimizer, faster with 8 threads: true
	// 4 x A100-80GB-SXM: offload=optimizer, faster with 8 threads: true
	// 1 x H100-80GB-SXM: offload=optimizer, faster with 8 threads: true
	// 4 x H100-80GB-SXM: offload=optimizer, faster with 8 threads: true
	// the fourth device adds something: true
}

// Pareto returns the plans on the front over speed, memory and devices. On the same
// number of devices, a slower plan needs less memory.
func ExamplePlanner_Pareto() {
	pl := planner.New(&analytic.Model{}, planner.Options{})

	r := requestFor(8)
	front, err := pl.Pareto(context.Background(), r)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("fastest:", front.Choices[0].Config.Plan)
	smaller := true
	for i, c := range front.Choices[1:] {
		smaller = smaller && c.Prediction.MemoryBytes < front.Choices[i].Prediction.MemoryBytes
	}
	fmt.Println("each is smaller than the one before:", smaller)
	fmt.Println("few are on the front:", 10*len(front.Choices) < front.Fitting)
	// Output:
	// fastest: dp=8,tp=1,pp=1,mb=1,ga=16,zero=3,precision=bf16
	// each is smaller than the one before: true
	// few are on the front: true
}

// BeatsBest shows the uncertainty of a ranking: any of the ten best plans may be the
// fastest.
func ExamplePlanner_BeatsBest() {
	pl := planner.New(&analytic.Model{}, planner.Options{})

	r := requestFor(16)
	r.Top = 10
	ranking, err := pl.Rank(context.Background(), r)
	if err != nil {
		log.Fatal(err)
	}
	probabilities, err := pl.BeatsBest(context.Background(), r, ranking.Choices)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d of %d plans cannot be distinguished from the best\n", planner.Ties(probabilities), len(probabilities)-1)
	// Output:
	// 9 of 9 plans cannot be distinguished from the best
}

// Probes returns the measurements to take before a decision. Gain is the expected
// rise of ln(throughput) of the chosen plan.
func ExamplePlanner_Probes() {
	pl := planner.New(&analytic.Model{}, planner.Options{})

	probes, err := pl.Probes(context.Background(), requestFor(8), 2)
	if err != nil {
		log.Fatal(err)
	}
	known := 0.0
	for i, p := range probes {
		fmt.Printf("%d devices, probe %d adds: %v\n", p.Choice.Config.Plan.Devices(), i+1, p.Gain > known)
		known = p.Gain
	}
	// Output:
	// 8 devices, probe 1 adds: true
	// 8 devices, probe 2 adds: true
}

// Migrate returns whether moving a running job to another plan pays: not shortly
// before the job ends.
func ExamplePlanner_Migrate() {
	ctx := context.Background()
	pl := planner.New(&analytic.Model{}, planner.Options{})

	best, err := pl.Best(ctx, requestFor(16))
	if err != nil {
		log.Fatal(err)
	}
	running := best.Config
	running.Plan = spec.Plan{DP: 2, TP: 8, MicroBatch: 1, AccumSteps: 64, ZeRO: 1, Precision: spec.BF16}
	for _, remaining := range []float64{1e3, 1e6} { // samples
		m, err := pl.Migrate(ctx, planner.Move{From: running, To: best.Config, RemainingSamples: remaining})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.0f samples left, a checkpoint of %.0f GB: pays: %v\n", remaining, m.StateBytes/1e9, m.Worth)
	}
	// Output:
	// 1000 samples left, a checkpoint of 112 GB: pays: false
	// 1000000 samples left, a checkpoint of 112 GB: pays: true
}

// counting is a performance model that counts its predictions per device type. A
// planner needs no more than the Predict method.
type counting map[string]int

func (n counting) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	n[c.Accelerator.Name]++
	return (&analytic.Model{}).Predict(ctx, c)
}

// WithPredictor keeps the answers that do not depend on a refitted performance
// model.
func ExamplePlanner_WithPredictor() {
	predicted := counting{}
	pl := planner.New(predicted, planner.Options{})

	onH100, onA100 := requestFor(4), requestFor(4)
	onA100.Accelerator = a100
	answer := func(pl *planner.Planner) {
		for _, r := range []planner.Request{onH100, onA100} {
			if _, err := pl.Best(context.Background(), r); err != nil {
				log.Fatal(err)
			}
		}
	}
	answer(pl)
	clear(predicted)

	refitted := pl.WithPredictor(predicted, spec.Key{Model: llama.Name, Accelerator: a100.Name})
	answer(refitted)
	fmt.Println("A100 again:", predicted[a100.Name] > 0)
	fmt.Println("H100 again:", predicted[h100.Name] > 0)
	// Output:
	// A100 again: true
	// H100 again: false
}
