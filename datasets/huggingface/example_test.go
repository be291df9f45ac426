package huggingface_test

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/datasets/huggingface"
)

// The file gives only the context window, so the tokens per sample are assumed.
func ExampleRead() {
	const file = `{"model_type": "llama", "_name_or_path": "meta-llama/Llama-3.1-8B", "hidden_size": 4096,
		"intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
		"num_hidden_layers": 32, "vocab_size": 128256, "max_position_embeddings": 131072}`
	m, warnings, err := huggingface.Read(strings.NewReader(file))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %.2f billion parameters, %d tokens per sample\n", m.Name, m.Params()/1e9, m.SeqLen)
	for _, w := range warnings {
		fmt.Println("warning:", w)
	}
	// Output:
	// Llama-3.1-8B: 8.03 billion parameters, 8192 tokens per sample
	// warning: the tokens of a sample are assumed: 8192, not the 131072 there are positions for
}
