// Command serve measures how many predictions a second pacer serve answers, and
// how soon:
//
//	go run ./bench/serve -pacer bin/pacer -rate 10000 -duration 10s
//
// It starts the server on a free port and asks it on kept connections, open
// loop: question i is due i/rate seconds after the start whatever became of the
// ones before, and its latency counts from when it was due. No two questions
// are about the same configuration. Client and server share the cores.
//
// Start with main.go; questions.go makes what is asked, load.go asks it, and
// conn.go is as little HTTP as that takes.
package main
