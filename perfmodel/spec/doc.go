// Package spec defines the terms that all packages share: the network being trained (Model), the devices and
// links (Accelerator, Shape, Link), the way a step is split (Plan), all of these together (Config), a measured
// and a predicted step (Measurement, Prediction), and the jobs and nodes of a scheduler (Job, Cluster).
//
// It holds values with small pure methods. It imports only the standard library and stats, its own subpackage,
// so that every other package may import it. Start with plan.go, config.go and measurement.go.
//
// Units are base units in float64: seconds, bytes, FLOP/s, bytes/s, samples/s. A field's name carries the unit
// unless the word implies it.
package spec
