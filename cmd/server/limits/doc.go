// Package limits bounds what a server works on at the same time.
//
// Start with fair_queue.go (FairQueue shares seats among clients by the time that their requests take).
// connections.go bounds the open connections.
package limits
