// Package policy holds the scheduling policies, one per file, each registered
// under its name.
//
// Start with registry.go and ordered.go; fifo.go is the smallest policy and
// rubick.go the one that chooses plans and sizes. belief.go turns the oracle
// into what policies compare: for every kind of job and group of nodes, the
// ways to run it and how fast each is believed to be. To add a queue order,
// write a comparison and register Ordered with it.
package policy
