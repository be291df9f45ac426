// Package querytest opens stores and registries for tests of what answers from them.
//
// Start with open.go.
package querytest
