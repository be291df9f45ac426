package report

import (
	"errors"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// request is for up to four devices of 16 GiB.
func request() planner.Request {
	return planner.Request{
		Model:       spec.Model{Name: "a <b>model</b>", ParamCount: 1.5e9, Layers: 24, SeqLen: 1024},
		Accelerator: spec.Accelerator{Name: "card & co", MemBytes: 16 * memory.GiB, FP16: 100e12, BF16: 100e12},
		Link:        spec.Link{IntraBps: 50e9, InterBps: 12.5e9},
		GlobalBatch: 8, Devices: 4, MinDevices: 1, PerNode: 2,
	}
}

// choice is a choice on dp devices with a throughput, an interval of ±20 %, and memory
// in GiB.
func choice(dp int, throughput, gib float64, warnings ...error) planner.Choice {
	r := request()
	return planner.Choice{
		Config: spec.Config{Model: r.Model, Accelerator: r.Accelerator, Shape: spec.Packed(dp, 2),
			Plan: spec.Plan{DP: dp, MicroBatch: int(gib) + 1, AccumSteps: 1, Precision: spec.BF16}.Normal()},
		Prediction: spec.Prediction{Throughput: throughput, Lo: throughput * 0.8, Hi: throughput * 1.2,
			MemoryBytes: gib * memory.GiB, By: "analytic", Warnings: warnings},
		Fits: true, CostPerSample: float64(dp) / throughput / 3600, Efficiency: 1,
	}
}

// input has every section.
func input() Input {
	r := request()
	guess := errors.New("card & co: its links are a <guess>")
	four, three, one := choice(4, 10, 8, guess), choice(4, 8, 5, guess), choice(1, 3, 12)
	miss := choice(4, 20, 40)
	miss.Fits, miss.Why = false, "needs 40.0 GiB of 16.0 GiB"
	return Input{
		Request:   r,
		Ranking:   planner.Ranking{Choices: []planner.Choice{four, three, one, miss}, Fitting: 3, Misses: 1, Evaluated: 4},
		BeatsBest: []float64{math.NaN(), 0.23, 0.001},
		Time:      []Part{{"forward and backward", 0.6}, {"traffic", 0.2}, {"nothing", 0}},
		Memory:    []Part{{"weights", 6 * memory.GiB}, {"buffers", 2 * memory.GiB}}, HostBytes: 3 * memory.GiB,
		Front:    planner.Ranking{Choices: []planner.Choice{one, four, three}},
		Curve:    planner.Curve{Request: r, Points: []planner.CurvePoint{{Devices: 1, Choice: one}, {Devices: 2, Choice: one}, {Devices: 3, Choice: one}, {Devices: 4, Choice: four}}},
		Probes:   []planner.Probe{{Choice: three, Gain: 0.0312}},
		Facts:    []Fact{{"Command", `pacer plan --model 'a <b>model</b>' && true`}, {"Unknown", ""}},
		Warnings: []string{"</script><script>alert(1)</script>"},
	}
}
