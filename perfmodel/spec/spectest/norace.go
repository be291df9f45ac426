//go:build !race

package spectest

// Race reports whether the race detector is on.
const Race = false
