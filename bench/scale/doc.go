// Command scale measures the processor time and memory of large simulations:
//
//	go run ./bench/scale -nodes 12500 -jobs 1000000 -policy fifo-backfill,srtf,las:round=300
//	go run ./bench/scale -figure docs/benchmarks
//
// Half of the nodes are of a type twice as fast as the others. Jobs arrive as a
// Poisson process, with the sizes (1, 2, 4 or 8 devices) and run times of Blox's
// simulator; run times are those on the slow type. The load is the requested
// device-seconds per second, divided by the slow devices plus twice the fast ones.
// Everything runs on one core.
//
// Start with main.go; case.go has the simulation, figure.go the figure.
package main
