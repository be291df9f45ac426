// Command gotest runs go test and reports skipped tests, whether tests pass or fail.
//
//	go run ./bench/gotest ./...        # packages, failures, and skips counted by reason
//	go run ./bench/gotest -v ./...     # the same, and every skipped test by name
//
// It takes the flags of go test. The Makefile runs tests by it.
//
// Start with main.go, then events.go.
package main
