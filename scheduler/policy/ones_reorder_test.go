package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// bestLayout tries every order of blocks and of the devices left over.
func bestLayout(now []int, blocks []onesBlock) (best int) {
	empty := len(now)
	for _, b := range blocks {
		empty -= b.size
	}
	var try func(device, kept, empty int, left []onesBlock)
	try = func(device, kept, empty int, left []onesBlock) {
		best = max(best, kept)
		if empty > 0 {
			try(device+1, kept, empty-1, left)
		}
		for i, b := range left {
			keeps := 0
			for _, id := range now[device : device+b.size] {
				if id == b.id {
					keeps++
				}
			}
			try(device+b.size, kept+keeps, empty, slices.Delete(slices.Clone(left), i, i+1))
		}
	}
	try(0, 0, empty, blocks)
	return best
}

// drawLayout draws a present and blocks for it; jobs hold devices side by side if
// apart.
func drawLayout(rng *rand.Rand, devices, jobs, most int, apart bool) (now []int, blocks []onesBlock) {
	now = make([]int, devices)
	for i := range now {
		now[i] = -1
	}
	at := 0
	for id := range jobs {
		if n := 1 + rng.IntN(most); rng.IntN(4) > 0 && at+n <= devices {
			for d := at; d < at+n; d++ {
				now[d] = id
			}
			at += n
		}
		at += max(rng.IntN(4)-2, 0)
	}
	if !apart {
		rng.Shuffle(devices, func(a, b int) { now[a], now[b] = now[b], now[a] })
	}
	room := devices
	for _, id := range rng.Perm(jobs) {
		if n := 1 + rng.IntN(most); n <= room && rng.IntN(5) > 0 {
			blocks = append(blocks, onesBlock{id, n})
			room -= n
		}
	}
	return now, blocks
}

// checkLayout checks that blocks lie where they can, and returns how many devices
// stay with their jobs.
func checkLayout(t *testing.T, now []int, blocks []onesBlock, at []int) (keeps int) {
	t.Helper()
	taken := make([]bool, len(now))
	for i, b := range blocks {
		for d := at[i]; d < at[i]+b.size; d++ {
			if taken[d] {
				t.Fatalf("%v of %v at %v: device %d is taken twice", blocks, now, at, d)
			}
			taken[d] = true
			if now[d] == b.id {
				keeps++
			}
		}
	}
	return keeps
}

// No order of the blocks changes fewer devices.
func TestLayOutIsOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 6000 {
		now, blocks := drawLayout(rng, 1+rng.IntN(11), 1+rng.IntN(6), 1+rng.IntN(5), i%3 > 0)
		at, keeps, proven := layOut(now, blocks)
		if got, want := checkLayout(t, now, blocks, at), bestLayout(now, blocks); got != want || keeps != want || !proven {
			t.Fatalf("%v on %v: %v keeps %d, said to be %d, proven %v, want %d", blocks, now, at, got, keeps, proven, want)
		}
	}
}

// drawNext draws a present and what an iteration might make of it: most jobs stay,
// some end, are doubled or halved, and others come.
func drawNext(rng *rand.Rand, devices, most int) (now []int, blocks []onesBlock) {
	now = make([]int, devices)
	room := devices
	for id, at := 0, 0; at < devices; id++ {
		n := min(1+rng.IntN(most), devices-at)
		for range n {
			now[at] = id
			at++
		}
		switch rng.IntN(10) {
		case 0: // it ends
			continue
		case 1:
			n *= 2
		case 2:
			n = (n + 1) / 2
		}
		if n <= room {
			blocks = append(blocks, onesBlock{id, n})
			room -= n
		}
	}
	for id := devices; room > 0; id++ {
		n := min(1<<rng.IntN(4), room)
		blocks = append(blocks, onesBlock{id, n})
		room -= n
	}
	return now, blocks
}

// Of schedules that follow one another on 64 devices the best is nearly always proven; on
// any number what is kept is close to what cannot be exceeded.
func TestLayOutIsProven(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		devices, most, draws int
		open                 int     // that may be left open
		least                float64 // of the bound, on average
	}{{64, 4, 300, 1, 0.97}, {64, 16, 300, 0, 0.98}, {64, 32, 300, 0, 0.99}, {1024, 16, 10, 10, 0.85}, {1024, 64, 10, 8, 0.86}} {
		open, kept, most := 0, 0, 0
		for range c.draws {
			now, blocks := drawNext(rng, c.devices, c.most)
			at, keeps, proven := layOut(now, blocks)
			if got := checkLayout(t, now, blocks, at); got != keeps {
				t.Fatalf("%v on %v: %v keeps %d, said to be %d", blocks, now, at, got, keeps)
			}
			if !proven {
				open++
			}
			l := &onesLayout{now: now, blocks: blocks}
			l.sort()
			l.bounds(1)
			kept, most = kept+keeps, most+l.most(0, 0)
		}
		t.Logf("%+v: %d open, %.3f of the bound", c, open, float64(kept)/float64(most))
		if open > c.open || float64(kept) < c.least*float64(most) {
			t.Errorf("%+v: %d are not proven, %d of %d are kept", c, open, kept, most)
		}
	}
}

func BenchmarkLayOut(b *testing.B) {
	for _, c := range []struct{ devices, most int }{{64, 8}, {1024, 16}} {
		b.Run(fmt.Sprintf("devices=%d", c.devices), func(b *testing.B) {
			now, blocks := drawNext(rand.New(rand.NewPCG(5, 6)), c.devices, c.most)
			for b.Loop() {
				layOut(now, blocks)
			}
		})
	}
}
