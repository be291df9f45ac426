package main

import (
	"encoding/json"
	"fmt"
)

// Parts of requests, legal in every combination: the heads of every model are
// multiples of 8, its layers of 4.
var (
	models       = []string{"llama3-8b", "llama2-7b", "llama2-13b", "llama3-70b", "mistral-7b", "gpt3-175b"}
	accelerators = []string{"h100", "a100", "h200", "a100-40gb"}
	degrees      = []string{
		"dp=8,zero=3", "dp=16,zero=2,recompute=full", "dp=8,tp=2,zero=1", "dp=4,tp=4,zero=1,recompute=selective", "dp=2,tp=8",
		"dp=4,tp=2,pp=4,ga=8", "dp=2,tp=4,pp=4,ga=16,recompute=full", "dp=32,zero=3,recompute=full", "dp=8,tp=8,zero=1", "dp=4,tp=8,pp=4,ga=16",
	}
	microBatches = []int{1, 2, 4}
)

// newRequests returns n distinct requests for predictions: the combinations above,
// then the same at further sequence lengths.
func newRequests(host string, n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		k := i
		next := func(m int) int { j := k % m; k /= m; return j }
		body := fmt.Sprintf(`{"model":%q,"accelerator":%q,"plan":"%s,mb=%d","seq":%d}`,
			models[next(len(models))], accelerators[next(len(accelerators))], degrees[next(len(degrees))], microBatches[next(len(microBatches))], 1024+64*k)
		out[i] = fmt.Appendf(nil, "POST /v1/predict HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body)
	}
	return out
}

// launchFiles are a file of each of four formats, with places for the micro-batch and for the steps to train.
var launchFiles = []struct{ name, text string }{
	{"job.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = %d\nseq_len = 8192\nsteps = %d\n[parallelism]\ntensor_parallel_degree = 2\n"},
	{"train.sh", "TP=2\ntorchrun --nproc-per-node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \\\n  --micro-batch-size %d --global-batch-size 256 --tensor-model-parallel-size $TP --bf16 --use-distributed-optimizer --train-iters %d\n"},
	{"axolotl.yml", "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 4096\nmicro_batch_size: %d\nmax_steps: %d\ngradient_accumulation_steps: 2\ngradient_checkpointing: true\nbf16: true\nfsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n"},
	{"ds_config.json", "{\"train_micro_batch_size_per_gpu\": %d, \"train_steps\": %d, \"gradient_accumulation_steps\": 2, \"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3}}"},
}

// newChecks returns n distinct requests about launch files.
func newChecks(host string, n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		f := launchFiles[i%len(launchFiles)]
		in := map[string]any{"file": f.name, "text": fmt.Sprintf(f.text, microBatches[i/len(launchFiles)%len(microBatches)], 1000+i), "accelerator": accelerators[i%2], "devices": 32}
		if f.name == "ds_config.json" {
			in["model"] = "llama3-8b"
		}
		body, err := json.Marshal(in)
		if err != nil {
			panic(err) // text and numbers always marshal
		}
		out[i] = fmt.Appendf(nil, "POST /v1/check HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body)
	}
	return out
}
