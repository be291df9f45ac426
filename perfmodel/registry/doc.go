// Package registry stores fitted performance models on disk: one file per model,
// accelerator and family, each with its Card.
//
// Start with registry.go; envelope.go is the file format, and search.go forwards
// the optional interfaces of predictors, and files.go copies models to another registry.
package registry
