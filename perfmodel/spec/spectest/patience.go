package spectest

import (
	"testing"
	"time"
)

// Patience is a time limit for work of d on an idle machine: far above d, and more
// so under the race detector, so that only work that never ends exceeds it.
func Patience(d time.Duration) time.Duration { return 10 * Scaled(d) }

// Scaled is a pause that lets another process do what it does in d on an idle
// machine: d, and five times as long under the race detector.
func Scaled(d time.Duration) time.Duration {
	if Race {
		return 5 * d
	}
	return d
}

// Retry makes a check that depends on the clock until it holds, up to ten times. A
// busy machine delays some attempts, not all of them.
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
