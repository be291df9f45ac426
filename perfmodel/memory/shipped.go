package memory

import (
	_ "embed"
	"encoding/json"
)

// shippedJSON is the result of Calibrate on the published measurements, rounded to four digits. `go test
// ./bench -run TestMemoryCalibration -rewrite` writes it; without the flag, the test compares it with a new
// fit.
//
//go:embed shipped.json
var shippedJSON []byte

var shipped = mustShipped()

// mustShipped reads the embedded file. It panics if the file is damaged, since the build is broken then.
func mustShipped() *Calibration {
	cal := new(Calibration)
	if err := json.Unmarshal(shippedJSON, cal); err != nil {
		panic("memory: shipped.json: " + err.Error())
	}
	return cal
}

// Shipped returns the calibration that For and Estimate use. It must not be changed.
func Shipped() *Calibration { return shipped }
