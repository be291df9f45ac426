//go:build race

package spectest

// race reports whether the race detector is on.
const race = true
