// Package trainlog reads step times, memory and batch sizes from what training frameworks print.
//
// Start with trainlog.go (Log and Reader), then formats.go (the lines of each framework) and time.go (from logged
// figures to step times). The formats are those of:
//
//	megatron    Megatron-LM and its forks: "elapsed time per iteration (ms)", "memory (MB)"
//	torchtitan  "step: 10 ... memory: 9.46GiB(64.99%) tps: 7,282", tokens per second of one device; memory is reserved
//	deepspeed   "..., CurrSamplesPerSec=...", compared with the times of the lines, or "iter time (s)" of pipelines
//	nemo        "train_step_timing in s", of NeMo and other Lightning programs with that callback
//	lightning   the progress bar of Lightning, which counts micro-batches
//	trainer     the progress bar of Hugging Face's Trainer, which counts steps, and its "train_runtime"
//	maxtext     "completed step: 9, seconds: 5.667"
package trainlog
