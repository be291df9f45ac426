package slurm

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchPolls: Slurm is observed once in a Poll, and four times as often while a job stops.
func TestWatchPolls(t *testing.T) {
	for fast, want := range map[bool]int{false: 5, true: 20} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			c := &Cluster{Options: Options{Poll: 2 * time.Second}}
			c.fast.Store(fast)
			changes, err := c.Watch(ctx)
			if err != nil {
				t.Fatal(err)
			}
			polls := 0
			time.AfterFunc(10*time.Second+time.Millisecond, stop)
			for range changes {
				polls++
			}
			if polls != want {
				t.Errorf("%d observations in 10 s, want %d if a job stops is %v", polls, want, fast)
			}
		})
	}
}
