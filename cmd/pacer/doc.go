// Command pacer predicts the throughput of training jobs, plans their parallelism and compares
// schedulers.
//
// Start with app.go (the table of verbs) and plan.go (a verb here). Verbs with more than a file are
// packages below cmd/internal.
package main
