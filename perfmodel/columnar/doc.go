// Package columnar reads and writes Arrow and Parquet files safely. The Arrow
// library trusts a file: on a damaged one it allocates any length, waits for ever
// for missing levels, and panics; on a full disk it panics too. Through this
// package all of these are errors.
//
// Start with guard.go, then flat.go (columns without lists) and sticky.go
// (writing).
package columnar
