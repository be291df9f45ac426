package spec

// Colocation is a measurement of two jobs running at the same time on the same devices.
type Colocation struct {
	A, B         Config  // as each would run alone; both have the same accelerator and shape
	RateA, RateB float64 // samples/s of each, above 0
	Source       string
}
