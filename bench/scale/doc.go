// Command scale measures what simulating costs as clusters and workloads grow:
//
//	go run ./bench/scale -nodes 12500 -jobs 1000000 -policy fifo-backfill,srtf,las:round=300
//	go run ./bench/scale -figure docs/benchmarks
//
// Half of the nodes are of a type twice as fast. Jobs arrive as a Poisson
// process; they ask for 1, 2, 4 or 8 devices and run as long as those that Blox's
// simulator draws, on the slow type. The load is the device-seconds they ask for
// per second over the slow devices and twice the fast ones. Everything runs on one
// core; times are those of the processor.
//
// Start with main.go; case.go is what is simulated, figure.go the figure.
package main
