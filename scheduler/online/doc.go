// Package online is a belief that learns while jobs run: performance models fitted
// to a few profiled points at first, and anew to what is seen of the jobs.
//
// Start with oracle.go; package sim tells it what is seen (sim.Sightings).
package online
