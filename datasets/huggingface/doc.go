// Package huggingface reads the config.json of a model of the Hugging Face
// transformers library, or of a diffusion transformer of diffusers: the
// shape as a spec.Model (Read), and norm, activation, positions and biases as
// spec.Details (Details).
//
// Start with read.go, then arch.go: one entry per architecture with the defaults
// of its config class and its exceptions. config.go reads single fields within
// bounds; details.go has the defaults of Details; diffusion.go counts the work of
// diffusion transformers, where tokens pass different matrices.
//
// To support an architecture, add its model_type to architectures in arch.go, to
// defaultDetails in details.go, and a released config.json with its published
// parameter count to the tests.
package huggingface
