// Package columnar reads and writes Arrow and Parquet files safely. The Arrow library trusts its input: a
// damaged file makes it allocate any size, wait forever or panic, and a full disk makes it panic. Through this
// package all of these are errors.
//
// Start with guard.go (panics, allocations), then pages.go (page checks), flat.go (columns without lists) and
// sticky.go (writing).
package columnar
