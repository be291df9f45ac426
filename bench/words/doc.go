// Command words finds banned constructions in documents, comments, help, errors and
// names of the whole tree.
//
//	go run ./bench/words                     # as make lint runs it
//	go run ./bench/words ./scheduler/...     # every finding below scheduler
//	go run ./bench/words -counts             # number of findings by directory
//
// Start with rules.go (banned constructions), extract.go (texts) and main.go.
package main
