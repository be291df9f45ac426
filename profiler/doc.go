// Package profiler is where measurements come from and where they are kept.
// Package store, below it, keeps them: one row per observation, in badger, with
// Parquet and Arrow in and out. Start with store/doc.go.
package profiler
