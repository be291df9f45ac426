// Package bench holds what needs the whole of Pacer at once: how far the
// performance models are off on published measurements, and end-to-end
// benchmarks. Tests only.
//
// Start with accuracy_test.go. The data is not part of the repository: tests
// look for it in the directory that PACER_SHARED names.
package bench
