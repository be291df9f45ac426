// Package measured holds what this project measured itself: one Parquet file
// and one provenance file per campaign, embedded in the program. The campaigns
// are those of bench/campaigns; start with measured.go, or with a .json file.
//
// To add a set, run its campaign, export the rows as NAME.parquet and write
// NAME.json beside it.
package measured
