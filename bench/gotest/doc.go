// Command gotest runs go test and reports skipped tests, whether tests pass or fail.
//
//	go run ./bench/gotest ./...          # packages, failures, and skips counted by reason
//	go run ./bench/gotest -skips ./...   # the same, with each skipped test by name
//
// All other flags are those of go test; -v prints the output of every test. The Makefile
// runs tests with this command.
//
// Start with main.go, then events.go.
package main
