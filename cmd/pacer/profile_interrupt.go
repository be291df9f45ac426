package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameInterrupt is how long after the first another signal still is the same
// one: some programs signal a process and then its group.
const sameInterrupt = 250 * time.Millisecond

// interruptedAgain returns a channel that is closed when this process is asked to
// end for the second time. The third time ends it. stop lets go of the signals.
func interruptedAgain() (again <-chan struct{}, stop func()) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	asked, over, closed := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(asked, ends...)
	go func() {
		for first := (time.Time{}); ; {
			select {
			case <-over:
				return
			case <-asked:
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
	return closed, func() { signal.Stop(asked); close(over) }
}
