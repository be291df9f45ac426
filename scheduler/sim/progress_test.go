package sim

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// walk computes a progress second by second.
type walk struct {
	stages      []Stage
	done, saved float64
	savedAt     int
	trained     int // since the last checkpoint
	writing     int // seconds of a checkpoint so far
}

// second advances by a second from t.
func (w *walk) second(t int, speed float64, every, write int) {
	if every > 0 && w.trained == every {
		if w.writing++; w.writing == write {
			w.trained, w.writing, w.saved, w.savedAt = 0, 0, w.done, t+1
		}
		return
	}
	w.done = trainedFor(w.stages, w.done, 1, speed)
	if w.trained++; w.trained == every && write == 0 {
		w.trained, w.saved, w.savedAt = 0, w.done, t+1
	}
}

// trainedFor returns the steps done after training for some time.
func trainedFor(stages []Stage, done, sec, speed float64) float64 {
	for i, s := range stages {
		if i == len(stages)-1 || done+s.Rate*speed*sec <= s.Until {
			return done + s.Rate*speed*sec
		}
		if done < s.Until {
			sec -= (s.Until - done) / (s.Rate * speed)
			done = s.Until
		}
	}
	return done
}

// A progress agrees with walk at all times, for any sequence of calls, and ends when walk has
// done the work.
func TestCourse(t *testing.T) {
	const horizon = 300
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.IntRange(0, 20).Draw(t, "begin")
		every, write := rapid.SampledFrom([]int{0, 1, 7, 30}).Draw(t, "every"), rapid.SampledFrom([]int{0, 1, 9}).Draw(t, "write")
		var stages []Stage
		for range rapid.IntRange(1, 4).Draw(t, "stages") {
			until := rapid.Float64Range(0.1, 60).Draw(t, "until")
			if n := len(stages); n > 0 {
				until += stages[n-1].Until
			}
			stages = append(stages, Stage{Until: until, Rate: rapid.Float64Range(0.1, 10).Draw(t, "rate")})
		}
		speeds := make([]float64, horizon)
		for i := range speeds {
			if i == 0 || rapid.IntRange(0, 19).Draw(t, "changes") == 0 {
				speeds[i] = rapid.SampledFrom([]float64{0.1, 0.5, 1, 1.5}).Draw(t, "speed")
			} else {
				speeds[i] = speeds[i-1]
			}
		}
		speed := func(at time.Duration) (float64, time.Duration) {
			i := int(at / time.Second)
			if i >= horizon {
				return 1, never
			}
			end := i + 1
			for end < horizon && speeds[end] == speeds[i] {
				end++
			}
			return speeds[i], time.Duration(end) * time.Second
		}
		c := progress{stages: stages, speed: speed, every: time.Duration(every) * time.Second, write: time.Duration(write) * time.Second}
		c = c.start(0, time.Duration(begin)*time.Second, 5)
		work := 5 + rapid.Float64Range(0.5, 200).Draw(t, "work")
		end, _ := c.end(work)
		w := walk{stages: stages, done: 5, saved: 5}
		for i := begin; i < horizon-1; i++ {
			before := w.done
			w.second(i, speeds[i], every, write)
			at := time.Duration(i+1) * time.Second
			if before < work-1e-9 && w.done > work+1e-9 {
				if by := trainedFor(stages, before, (end - at + time.Second).Seconds(), speeds[i]); end > at || math.Abs(by-work) > 1e-6 {
					t.Fatalf("%g steps end at %v, when %g are done", work, end, by)
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "look") > 0 {
				continue
			}
			saved, since := c.saved(at)
			if done := c.done(at); math.Abs(done-w.done) > 1e-6 || math.Abs(saved-w.saved) > 1e-6 || since != time.Duration(w.savedAt)*time.Second {
				t.Fatalf("at %v %g steps, %g of them saved at %v; counted: %+v", at, done, saved, since, w)
			}
		}
	})
}

// A progress that never ends does not overflow.
func TestCourseWithoutEnd(t *testing.T) {
	slow := []Stage{{Until: 1e200, Rate: 1e-300}, {Rate: 1e-300}}
	for _, c := range []progress{
		progress{stages: slow, every: time.Second, write: never}.start(0, never-1, 0),
		progress{stages: slow, every: time.Second, write: never, speed: Variation{Sigma: 1, Every: time.Hour * 1e4, Last: time.Hour, Slow: 0.5}.Node(3)}.start(never-1, 2*never-1, 0),
	} {
		if end, _ := c.end(1e300); end < never {
			t.Errorf("ends at %v", end)
		}
	}
}

// With RoundSec stages end at whole seconds, and the next one begins then:
// 10 steps at 4/s count as 2 s, to even, then 10 at 1/s end at 12 s; the third
// stage has begun by 12.4 s.
func TestCourseOfWholeSeconds(t *testing.T) {
	stages := []Stage{{Until: 10, Rate: 4}, {Until: 20, Rate: 1}, {Rate: 5}}
	c := progress{stages: stages, round: math.RoundToEven}.start(0, 0, 0)
	if exact, counts := c.end(10); exact != 2500*time.Millisecond || counts != 2*time.Second {
		t.Errorf("10 steps end at %v, which counts as %v", exact, counts)
	}
	if exact, counts := c.end(26); exact != 13200*time.Millisecond || counts != 13*time.Second {
		t.Errorf("26 steps end at %v, which counts as %v", exact, counts)
	}
	for _, at := range []struct{ sec, done float64 }{{2.25, 9}, {2.5, 10.5}, {12.4, 22}} {
		if got := c.done(seconds(at.sec)); math.Abs(got-at.done) > 1e-9 {
			t.Errorf("%g steps by %g s, want %g", got, at.sec, at.done)
		}
	}
}
