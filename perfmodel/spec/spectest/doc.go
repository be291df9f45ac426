// Package spectest has helpers for tests of several packages: files, the published data sets, expected
// files, and time limits that hold on a busy machine.
//
// Start with shared.go and golden.go.
package spectest
