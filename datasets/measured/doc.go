// Package measured holds the measurements of this project: per set one Parquet
// file and one provenance file, embedded in the program. The campaigns are
// those of bench/campaigns. Start with measured.go, or with a .json file.
//
// To add a set, run its campaigns, export the rows as NAME.parquet and write
// NAME.json beside it.
package measured
