// Package registry keeps fitted performance models on disk: one file per model,
// accelerator and family, each with its Card.
//
// Start with registry.go; envelope.go is what a file holds.
package registry
