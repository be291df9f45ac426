// Command mutate changes one operator or constant of a package at a time, runs the
// package's short tests, and reports the changes that no test notices.
//
//	make mutate PKG=./planner
//	go run ./bench/mutate -file objective.go -most 0 ./planner
//
// A survivor is a question to the reviewer: is a test missing, or does the change not
// matter? Source files are not touched: go test reads the changed one by -overlay.
//
// Start with mutants.go (what is changed), then main.go.
package main
