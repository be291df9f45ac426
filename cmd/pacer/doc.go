// Command pacer predicts the throughput of training jobs, ranks parallelism plans, and
// compares scheduling policies.
//
// One file per verb declares its flags, calls the packages below, and prints. Start with
// app.go (the commands), request_flags.go (the flags of planning requests) and simulate.go.
package main
