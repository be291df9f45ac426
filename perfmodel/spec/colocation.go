package spec

// Colocation is a measurement of two jobs that share devices, while both run.
type Colocation struct {
	A, B         Config  // as each runs alone; accelerator and shape are the same
	RateA, RateB float64 // samples/s of each, above 0
	Source       string
}
