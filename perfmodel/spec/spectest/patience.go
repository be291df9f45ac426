package spectest

import (
	"testing"
	"time"
)

// Patience returns a time limit for work that takes d on an idle machine. It is ten times d, and more under the
// race detector, so that only work that never ends exceeds it.
func Patience(d time.Duration) time.Duration { return 10 * Scaled(d) }

// Scaled returns a pause long enough for another process to do work that takes d on an idle machine: d, or 5 d
// under the race detector.
func Scaled(d time.Duration) time.Duration {
	if race {
		return 5 * d
	}
	return d
}

// Retry calls a check that depends on the clock until it succeeds, up to ten times. A busy machine delays some
// attempts, not all of them.
func Retry(t testing.TB, check func() error) {
	t.Helper()
	var err error
	for range 10 {
		if err = check(); err == nil || t.Failed() {
			return
		}
	}
	t.Error(err)
}
