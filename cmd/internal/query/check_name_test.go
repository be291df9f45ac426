package query

import (
	"fmt"
	"testing"
)

// A model is found by the words of frameworks and of directories. A flavor that is not known is the network of the
// tokenizer if that has its size.
func TestModelNames(t *testing.T) {
	for name, want := range map[string]string{
		"deepseek3-671b": "DeepSeekV3", "llama4-17b-16e": "Llama4-Scout", "kimi-k2-1t": "Kimi-K2", "lmsys/vicuna-7b-v1.5": "Llama2-7B", "/data/Qwen2.5-7B-Instruct/": "Qwen2.5-7B",
		"../hf/Meta-Llama-3-8B-Instruct": "Llama3-8B", "some/turnip-7b": "",
	} {
		if m, err := modelNamed(name); m.Name != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v, want %q", name, m.Name, err, want)
		}
	}
	for flavor, want := range map[string]string{"opt-30B-A3B": "Qwen3-30B-A3B", "debugmodel": "", "8B-opt": ""} {
		text := fmt.Sprintf("[model]\nname = \"qwen3\"\nflavor = %q\nhf_assets_path = \"./assets/hf/Qwen3-30B-A3B\"\n[training]\nlocal_batch_size = 1\nseq_len = 4096\n[parallelism]\ndata_parallel_shard_degree = 8\n", flavor)
		out, err := unmeasured(t).CheckFile(t.Context(), CheckRequest{Request: Request{Accelerator: "b200"}, File: "a.toml", Text: []byte(text)})
		if (err == nil) != (want != "") || want != "" && out.Model != want {
			t.Errorf("%s: model %s, %v, want %q", flavor, out.Model, err, want)
		}
	}
}
