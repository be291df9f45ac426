// Package pattern reads the small languages within values of launch files: layouts of pipelines, which layers have
// experts, and the layers of hybrids (layers.go), and the modules that adapters train (adapter.go).
package pattern
