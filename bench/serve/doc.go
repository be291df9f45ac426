// Command serve measures the latency of pacer serve at a rate of predictions:
//
//	go run ./bench/serve -pacer bin/pacer -rate 10000 -duration 10s
//
// It starts the server on a free port and sends requests over kept connections in an
// open loop: request i is due i/rate seconds after the start, and its latency counts
// from then. All requests are distinct. Client and server share the cores.
//
// With -check the requests are launch files to /v1/check, each with its five best changes and their diffs.
//
// With -batch it measures the processor time of the server in place of latencies: per question in batches of 10,000
// distinct ones, over /v1/predict/batch and Arrow Flight, and per row of an export of 100,000 rows over Flight. Answers
// over HTTP are compressed in the line that says so. The server does not refit its models by itself then.
//
// With -echo it compares the processor time of predictions with that of a server that only decodes the same requests and
// encodes an answer of the same bytes, in alternating runs; with -questions there are few distinct questions.
//
// Start with main.go; requests.go makes the requests, load.go sends them, and conn.go
// is a minimal HTTP client.
package main
