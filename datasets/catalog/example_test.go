package catalog_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/datasets/catalog"
)

// Names ignore case and punctuation. The error for an unknown name suggests
// similar ones.
func ExampleModel() {
	m, err := catalog.Model("llama_3_8b")
	fmt.Printf("%s: %d layers, %.1f billion parameters, error %v\n", m.Name, m.Layers, m.Params()/1e9, err)
	_, err = catalog.Model("llama-3-9b")
	fmt.Println(err)
	// Output:
	// Llama3-8B: 32 layers, 8.0 billion parameters, error <nil>
	// catalog: unknown model "llama-3-9b", nearest: Llama3-8B, LLaMA-30B, Llama2-7B
}

// A cluster by accelerator: links, CPUs and memory are those of its usual machine.
func ExampleCluster() {
	c, err := catalog.Cluster("2x8xH100,4x4xT4")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range c.Groups {
		fmt.Printf("%d nodes of %d %s, %d CPU threads\n", g.Count, g.Devices, g.Accelerator.Name, g.CPUs)
	}
	// Output:
	// 2 nodes of 8 H100-80GB-SXM, 224 CPU threads
	// 4 nodes of 4 T4, 48 CPU threads
}
