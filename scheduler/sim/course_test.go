package sim

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// walk is a course second by second.
type walk struct {
	done, saved float64
	savedAt     int
	trained     int // since the last checkpoint
	writing     int // seconds of a checkpoint so far
}

// second lets a second from t on pass.
func (w *walk) second(t int, speed float64, every, write int) {
	if every > 0 && w.trained == every {
		if w.writing++; w.writing == write {
			w.trained, w.writing, w.saved, w.savedAt = 0, 0, w.done, t+1
		}
		return
	}
	w.done += speed
	if w.trained++; w.trained == every && write == 0 {
		w.trained, w.saved, w.savedAt = 0, w.done, t+1
	}
}

// Whenever and however often it is looked at, a course is where counting seconds
// has it, and ends when that has done the work.
func TestCourse(t *testing.T) {
	const horizon = 300
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.IntRange(0, 20).Draw(t, "begin")
		every, write := rapid.SampledFrom([]int{0, 1, 7, 30}).Draw(t, "every"), rapid.SampledFrom([]int{0, 1, 9}).Draw(t, "write")
		rate := rapid.Float64Range(0.1, 10).Draw(t, "rate")
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
		c := newCourse(0, time.Duration(begin)*time.Second, 5, rate, speed)
		c.every, c.write = time.Duration(every)*time.Second, time.Duration(write)*time.Second
		work := 5 + rapid.Float64Range(0.5, 200).Draw(t, "work")
		end := c.end(work)
		w := walk{done: 5, saved: 5}
		for i := begin; i < horizon-1; i++ {
			before := w.done
			w.second(i, rate*speeds[i], every, write)
			at := time.Duration(i+1) * time.Second
			if before < work-1e-9 && w.done > work+1e-9 {
				if exact := at - time.Duration((w.done-work)/(rate*speeds[i])*1e9); (end - exact).Abs() > 2 {
					t.Fatalf("%g steps end at %v, want %v", work, end, exact)
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

// Courses that never end stay within times there are.
func TestCourseWithoutEnd(t *testing.T) {
	for _, c := range []course{
		newCourse(0, never-1, 0, 1e-300, nil),
		newCourse(never-1, 2*never-1, 0, 1e-300, Variation{Sigma: 1, Every: time.Hour * 1e4, Last: time.Hour, Slow: 0.5}.Node(3)),
	} {
		c.every, c.write = time.Second, never
		if end := c.end(1e300); end < never {
			t.Errorf("ends at %v", end)
		}
	}
}
