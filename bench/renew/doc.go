// Command renew keeps the tables of docs/benchmarks equal to the measured results in
// bench/results, a CSV file per table. On a page, a table is between the lines
// <!-- NAME --> and <!-- /NAME -->, where NAME.csv is its file.
//
//	go run ./bench/renew                  rewrites all tables from their files
//	go run ./bench/renew NAME <TABLE.md   stores a Markdown table as NAME.csv first
//
// The experiments in bench/experiments use the second form. Start with main.go, then
// table.go.
package main
