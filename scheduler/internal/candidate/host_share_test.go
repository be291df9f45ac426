package candidate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// hostBound is a model of jobs that fit only if they offload. Their speed is proportional
// to the CPUs per device, up to 24.
type hostBound struct{}

func (hostBound) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	p := spec.Prediction{Throughput: float64(c.Plan.Devices()), MemoryBytes: 100, By: "test"}
	if offloads(c.Plan) {
		each := 4.0
		if c.Shape.CPUs > 0 {
			each = float64(c.Shape.CPUs) / float64(c.Plan.Devices())
		}
		p.MemoryBytes, p.Throughput = 10, p.Throughput*min(each, 24)/24
	}
	return p, nil
}

// TestCurveOverCPUs checks that curves with Cpus have offloading plans at every number of
// CPUs that makes them faster, that these hold the CPUs and their share of the node's
// memory, and that their load counts both.
func TestCurveOverCPUs(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 40, HostBytes: 4 << 40,
		Accelerator: spec.Accelerator{Name: "x", MemBytes: 50}, Link: spec.Link{IntraBps: 1e11, InterBps: 1e10, HostBps: 1e10}}}}
	j := &spec.Job{ID: "a", Model: spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, Heads: 4, SeqLen: 8, Vocab: 100}, GlobalBatch: 8, Devices: 2}
	b := NewFinder(policy.Deps{Oracle: planner.New(hostBound{}, planner.Options{})})
	b.Cpus = true
	cv, err := b.Curve(t.Context(), c, j)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range cv.Configs {
		if o.Shape.Devices == "1" || o.Shape.Devices == "4" {
			got = append(got, fmt.Sprintf("%s: %d CPUs, %v each, load %.1f", o.Shape.Devices, o.Shape.CPUs, o.Host, o.Load))
		}
	}
	want := []string{
		"1: 1 CPUs, 1 CPUs and 1024 GiB each, load 1.0", "1: 2 CPUs, 2 CPUs and 1024 GiB each, load 1.0",
		"1: 4 CPUs, 4 CPUs and 1024 GiB each, load 1.0", "1: 8 CPUs, 8 CPUs and 1024 GiB each, load 1.0",
		"1: 16 CPUs, 16 CPUs and 1024 GiB each, load 1.6", "1: 32 CPUs, 32 CPUs and 1024 GiB each, load 3.2",
		"4: 4 CPUs, 1 CPUs and 1024 GiB each, load 4.0", "4: 8 CPUs, 2 CPUs and 1024 GiB each, load 4.0",
		"4: 16 CPUs, 4 CPUs and 1024 GiB each, load 4.0", "4: 32 CPUs, 8 CPUs and 1024 GiB each, load 4.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("options\n%q, want\n%q", got, want)
	}
	i := slices.IndexFunc(cv.Configs, func(o Config) bool { return o.Shape.CPUs == 16 && o.Devices == 1 })
	free := scheduler.NewInventory(c)
	g := b.PlaceOption(free, j, &cv.Configs[i])
	if g == nil || g.Slots[0].Host != (spec.Host{MilliCPUs: 16000, Bytes: 1 << 40}) || cv.At(&Config{Group: 0, Plan: g.Plan, Shape: g.Shape}) != &cv.Configs[i] {
		t.Errorf("grant %+v of an option with 16 CPUs", g)
	}
	j.Host.MilliCPUs = 3000
	if cv, err = b.Curve(t.Context(), c, j); err != nil || math.Mod(float64(cv.Configs[0].Shape.CPUs), 3) != 0 {
		t.Errorf("a job that needs 3 CPUs for each device has %d on one (%v)", cv.Configs[0].Shape.CPUs, err)
	}
}
