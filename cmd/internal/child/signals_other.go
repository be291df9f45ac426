//go:build !unix

package child

import "os"

// userSignals are those that end no run.
var userSignals []os.Signal
