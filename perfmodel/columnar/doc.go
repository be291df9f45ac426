// Package columnar opens Arrow and Parquet files that may be damaged. The Arrow
// library believes what a file says of itself: it allocates what a damaged
// length asks for, waits for ever for levels that are not there, and panics.
// What is read through this package ends in an error instead, and so does what is
// written to a disk that is full.
package columnar
