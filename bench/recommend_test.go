package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// recommended are the accelerators of BenchmarkRecommend.
var recommended = []string{"A100-40GB", "A100-80GB", "A800", "H100", "H100-PCIe", "H200", "B200", "GB200", "B300", "MI300X", "L40S", "V100-32GB"}

// BenchmarkRecommend finds the numbers of devices worth choosing among, of 1 to 4096 of each of 12 types, without a
// cache: the work of pacer recommend. The bar is 3 CPU seconds for all types.
func BenchmarkRecommend(b *testing.B) {
	fam := mustFamily(b, "analytic")
	for _, name := range []string{"Llama3-8B", "Llama3-70B", "Mixtral-8x7B", "DeepSeekV3"} {
		m, err := catalog.Model(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("model=%s/devices=4096", name), func(b *testing.B) {
			before, turns := cpuOf(usage(b)), 0
			for b.Loop() {
				points := 0
				turns++
				for _, accelerator := range recommended {
					a, err := catalog.Accelerator(accelerator)
					if err != nil {
						b.Fatal(err)
					}
					node, ok := catalog.NodeFor(a.Name)
					if !ok {
						node = spec.Node{Devices: 8}
					}
					pl := planner.New(fam.Unfitted, planner.Options{})
					front, err := pl.Front(context.Background(), planner.Request{Model: m, Accelerator: a, Link: node.Link, PerNode: node.Devices, NodeHostBytes: node.HostBytes, Devices: 4096, GlobalBatch: 1024})
					if err != nil {
						b.Fatal(err)
					}
					points += len(front.Points)
				}
				b.ReportMetric(float64(points), "points")
			}
			b.ReportMetric(float64(cpuOf(usage(b))-before)/1e9/float64(turns), "cpu-sec/op")
		})
	}
}
