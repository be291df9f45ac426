// Package hook times the training steps of an unchanged PyTorch program. It contains Python modules that run before
// the program because their directory is first on PYTHONPATH, and reads what they write.
//
// Start with pacer_hook/pacer_hook.py (what is timed, and when), then read.go (the files of the processes) and
// timing.go (one series of steps for all ranks).
//
// # What a step time is
//
// The time from the end of an optimizer step to the end of the next one, by CUDA events on the stream of the optimizer
// where CUDA is in use, else by the host's clock. So it includes everything that the program does in between, such as
// data loading, logging and evaluation. The first step of a process has no time.
//
// # What it cannot see
//
//   - Programs without a torch.optim.Optimizer, such as those of JAX.
//   - Steps in a CUDA graph that includes the optimizer.
//   - Programs started with python -I, -E or -S, or with a PYTHONPATH of their own that drops the hook's directory.
//   - Steps after the first 100,000 of a process.
//   - An optimizer that is stepped several times per iteration, each time after a backward pass, counts each time.
package hook
