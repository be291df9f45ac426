// Package pattern reads the small languages within values of launch files: layouts of pipelines and which layers have
// experts (layers.go), and the modules that adapters train (adapter.go).
package pattern
