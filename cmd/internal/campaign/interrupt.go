package campaign

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameInterrupt is the time within which two signals count as one: some programs signal a
// process and then its group.
const sameInterrupt = 250 * time.Millisecond

// interruptedAgain returns a channel that is closed at the second signal to end this process.
// The third signal ends it. stop restores the default.
func interruptedAgain() (again <-chan struct{}, stop func()) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	signals, over, closed := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, ends...)
	go func() {
		for first := (time.Time{}); ; {
			select {
			case <-over:
				return
			case <-signals:
			}
			switch {
			case first.IsZero():
				first = time.Now()
			case time.Since(first) > sameInterrupt:
				signal.Reset(ends...)
				close(closed)
				return
			}
		}
	}()
	return closed, func() { signal.Stop(signals); close(over) }
}
