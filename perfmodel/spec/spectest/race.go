//go:build race

package spectest

// Race is whether the race detector is on.
const Race = true
