package family

import (
	_ "embed"
)

//go:embed prior.json
var priorJSON []byte

var shipped = mustReadPrior()

// Shipped returns the prior that comes with the program, trained by bench/prior
// on published measurements.
func Shipped() *Prior { return shipped }

func mustReadPrior() *Prior {
	p, err := ReadPrior(priorJSON)
	if err != nil {
		panic(err) // built with a file of another version
	}
	return p
}
