// Package spec is Pacer's vocabulary: the network being trained (Model), the
// devices and links (Accelerator, Shape, Link), how a step is split (Plan), all of
// these together (Config), a measured and a predicted step (Measurement,
// Prediction), and what a scheduler works on (Job, Cluster).
//
// It holds values with small pure methods and imports the standard library
// only, so that every other package may import it. Start with plan.go,
// config.go and measurement.go.
//
// Units are base units in float64: seconds, bytes, FLOP/s, bytes/s, samples/s.
// A field's name carries the unit where the word does not.
package spec
