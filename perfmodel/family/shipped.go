package family

import (
	_ "embed"

	"github.com/pacer-ml/pacer/perfmodel/memory"
)

//go:embed prior.json
var priorJSON []byte

var shipped = readShipped()

// Shipped returns the prior that comes with the program, trained by bench/prior
// on published measurements.
func Shipped() *Prior { return shipped }

// readShipped falls back on what is known without training, so that bench/prior
// runs while the parameters change; a test keeps such a program from leaving
// the workshop.
func readShipped() *Prior {
	p, err := ReadPrior(priorJSON)
	if err != nil {
		return untrained()
	}
	// What package memory ships was trained on the same rows, and is what the
	// planner asks: one and the same, to the last bit.
	p.mem = memory.Shipped()
	p.physics.mem = p.mem
	return p
}
