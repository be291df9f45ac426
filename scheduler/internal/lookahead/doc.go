// Package lookahead plans jobs rollout in time: which of those that run keep
// what they hold, and in which order and in which of its ways each of the others
// runs, so that a sum of completion times is least.
//
// A plan is an order of the jobs that do not run, or are to be started anew, and
// a way for each. What it costs is found by running it rollout on the nodes: at
// the present and whenever a job ends, those in the order that fit start. Good
// plans are found by changing the best of some simple ones at random (search.go), first
// going on from worse ones too (anneal.go), and where there are many jobs by prices of devices over
// time (ascent.go), which also prove a bound on the cost of every plan (relaxed.go).
// That is the search by which schedules of projects with limited resources are
// made (Kolisch and Hartmann, "Heuristic algorithms for the resource-constrained
// project scheduling problem", 1999: parallel schedule generation), with nodes as
// resources and modes of unequal size.
package lookahead
