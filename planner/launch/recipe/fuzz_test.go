package recipe

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Text of any kind is read or refused, never a panic. What is read has a plan or an error, and fields that JSON can hold.
func FuzzRead(f *testing.F) {
	for _, seed := range []struct{ name, text string }{
		{"a.sh", "#!/bin/bash\nA=(--num-layers 2 --hidden-size 8 --num-attention-heads 2)\ntorchrun --nproc_per_node 8 pretrain_gpt.py ${A[@]} --micro-batch-size ${MBS:-1} --global-batch-size 16"},
		{"a.sh", "x=a; x=$x$x; x=$x$x; for i in {1..99999999}; do x=$x$x; done; while true; do :; done; f() { f; }; f; pretrain --num-layers 1"},
		{"a.sh", "cat <<EOF > c.json\n{\"zero_optimization\":{\"stage\":2}}\nEOF\np.py --num-layers 1 --deepspeed_config c.json --moe-layer-freq [0]*3+[1]*58"},
		{"a.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\npipeline_parallel_degree = 0\n"},
		{"a.json", "{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"nvme\"}}}"},
		{"a.yaml", "base_model: x\nmicro_batch_size: 1\ngradient_accumulation_steps: 99999999999999999999\nfsdp: [full_shard]\n"},
		{"a.yaml", "a: &a [*a]\nmodel:\n  hidden_size: ${multiply:4, ${.hidden_size}}\n  num_layers: ${.num_layers}\n"},
		{"a.yml", "base_config: base.yml\nper_device_batch_size: 1.5\nici_fsdp_parallelism: -1\n"},
	} {
		f.Add(seed.name, []byte(seed.text))
	}
	if dir := os.Getenv("PACER_SHARED"); dir != "" {
		files, _ := filepath.Glob(filepath.Join(dir, "data", "launch", "*", "*"))
		for _, name := range files {
			if text, err := os.ReadFile(name); err == nil {
				f.Add(filepath.Base(name), text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		r, err := Read(name, text, Options{Set: map[string]string{"X": "8"}})
		if err != nil {
			return
		}
		if _, err := json.Marshal(r.Given()); err != nil {
			t.Fatal(err)
		}
		r.SetLayers(32)
		for _, devices := range []int{0, 1, 64} {
			if p, _, err := r.Plan(devices); err == nil && devices > 0 && p.Devices() != devices {
				t.Fatalf("%d devices, but %s", devices, p)
			}
		}
		if m, _, ok := r.Network(usual); ok {
			_ = m.Validate()
		}
		_ = r.AdapterText()
	})
}

const usual = 50304
