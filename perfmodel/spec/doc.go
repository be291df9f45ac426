// Package spec is Pacer's vocabulary: what is trained (Model), on what
// (Accelerator, Shape, Link), split how (Plan), what was seen (Measurement),
// what is predicted (Prediction), and who asks for it (Job, Cluster).
//
// It holds values with small pure methods and imports the standard library
// only, so that every other package may import it. Start with plan.go,
// config.go and measurement.go.
//
// Units are base units in float64: seconds, bytes, FLOP/s, bytes/s, samples/s.
// A field's name carries the unit where the word does not.
package spec
