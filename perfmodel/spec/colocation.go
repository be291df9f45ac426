package spec

// Colocation is what was measured of two jobs on the same devices: of neither did
// the other stand still.
type Colocation struct {
	A, B         Config  // as each runs alone; accelerator and shape are the same
	RateA, RateB float64 // samples/s of each, above 0
	Source       string
}
