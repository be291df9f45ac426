package profiler_test

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

const campaign = `
name: tour
models:
  - {name: tiny, kind: decoder, layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 1000, seq_len: 32}
space:
  shapes: [1, 2]
  micro_batch: [1, 2]
  tp: [1, 2]
choose: grid
`

var machine = profiler.Machine{
	Accelerator: spec.Accelerator{Name: "CPU, 1 thread"}, Devices: []int{0, 1}, PerNode: 2, CPUs: 2, CPU: true, Framework: "example",
}

// ExampleCampaign_Points lists the points of a campaign on a machine, and the combinations that cannot run
// there.
func ExampleCampaign_Points() {
	c, err := profiler.ReadCampaign("tour.yaml", []byte(campaign), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	points, rejected, err := c.Points(machine)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range points {
		fmt.Println("point:", p.Config.Plan)
	}
	fmt.Println("not run:", rejected[0].Why)
	// Output:
	// point: dp=1,tp=1,pp=1,mb=1,ga=1,precision=fp32
	// point: dp=1,tp=1,pp=1,mb=2,ga=1,precision=fp32
	// point: dp=1,tp=2,pp=1,mb=1,ga=1,precision=fp32
	// point: dp=1,tp=2,pp=1,mb=2,ga=1,precision=fp32
	// point: dp=2,tp=1,pp=1,mb=1,ga=1,precision=fp32
	// point: dp=2,tp=1,pp=1,mb=2,ga=1,precision=fp32
	// not run: tp=2 does not divide the devices of a node (1)
}

// fixed is a Runner with steps of 10 ms.
type fixed struct{}

func (fixed) Run(_ context.Context, c spec.Config) (spec.Measurement, error) {
	return spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{0.01, 0.01, 0.01}}, nil
}

// printer is a Sink that prints.
type printer struct{}

func (printer) Put(_ context.Context, ms ...spec.Measurement) error {
	for _, m := range ms {
		fmt.Printf("%s: %s, %.0f samples/s\n", m.Origin, m.Config.Plan, m.Throughput())
	}
	return nil
}

// ExampleRun runs a campaign with its own runner and sink. store.DB is the usual Sink.
func ExampleRun() {
	c, err := profiler.ReadCampaign("tour.yaml", []byte(campaign), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := family.Lookup("rubick")
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := profiler.Run(context.Background(), c, profiler.Options{Machine: machine, Runner: fixed{}, Sink: printer{}, Family: f})
	fmt.Println(state.Stopped, err)
	// Output:
	// tour#1/1: dp=1,tp=1,pp=1,mb=1,ga=1,precision=fp32, 100 samples/s
	// tour#1/2: dp=1,tp=1,pp=1,mb=2,ga=1,precision=fp32, 200 samples/s
	// tour#1/3: dp=1,tp=2,pp=1,mb=1,ga=1,precision=fp32, 100 samples/s
	// tour#1/4: dp=1,tp=2,pp=1,mb=2,ga=1,precision=fp32, 200 samples/s
	// tour#1/5: dp=2,tp=1,pp=1,mb=1,ga=1,precision=fp32, 200 samples/s
	// tour#1/6: dp=2,tp=1,pp=1,mb=2,ga=1,precision=fp32, 400 samples/s
	// every point is measured <nil>
}
