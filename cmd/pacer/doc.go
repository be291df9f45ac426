// Command pacer predicts the throughput of training jobs, ranks parallelism plans, and
// compares scheduling policies.
//
// Start with app.go (the table of verbs). Verbs with more than a file are packages below
// cmd/internal.
package main
