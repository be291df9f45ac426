// Package table reads the tables of data sets: comma-separated rows with a header
// line (Read), single cells with checks (Record), and errors with file, line and
// column (RowError). Packages datasets and datasets/trace share it.
package table
