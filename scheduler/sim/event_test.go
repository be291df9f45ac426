package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Events are ordered by time, completions before wake-ups, then by insertion.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		var want []event
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			e := event{at: time.Duration(rapid.IntRange(0, 5).Draw(t, "at")), kind: kind(rapid.IntRange(0, 1).Draw(t, "kind"))}
			e.seq = q.seq
			q.add(e)
			want = append(want, e)
		}
		slices.SortStableFunc(want, func(a, b event) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return int(a.kind) - int(b.kind)
		})
		for i, w := range want {
			if got := q.Pop(); got != w {
				t.Fatalf("event %d is %+v, want %+v", i, got, w)
			}
		}
	})
}

func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		s    float64
		want time.Duration
	}{{1.5, 1500 * time.Millisecond}, {1e-12, 1}, {0, 1}, {1e30, never}, {3.0000000000000004, 3 * time.Second}} {
		if got := seconds(c.s); got != c.want {
			t.Errorf("seconds(%g) = %v, want %v", c.s, got, c.want)
		}
	}
}
