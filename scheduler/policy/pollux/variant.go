package pollux

// Variant replaces rules of Pollux. The zero value replaces none.
type Variant struct {
	// StartIsRestart multiplies the speedup of a job that has never run by its restart
	// factor too, which is 0 at submission.
	StartIsRestart bool
}
