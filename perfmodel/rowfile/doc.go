// Package rowfile reads and writes measurements as Arrow record batches, and as Parquet and Arrow files with the same
// columns.
//
//	n, err := rowfile.ExportFile("rows.parquet", rowfile.Parquet, rows)
//	for m, err := range rowfile.ReadParquet("rows.parquet") { ... }
//
// A damaged file gives errors, and no wrong row. FORMAT.md lists the columns, and what files of other tools may have
// otherwise.
//
// Start with columns.go (the columns) and check.go (which rows are refused); then write.go and column_builder.go,
// read_parquet.go and read_arrow.go. checksum.go is how damage is found.
package rowfile
