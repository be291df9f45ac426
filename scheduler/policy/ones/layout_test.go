package ones

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// bestLayout tries every order of blocks and of the devices left over.
func bestLayout(now []int, blocks []block) (best int) {
	empty := len(now)
	for _, b := range blocks {
		empty -= b.size
	}
	var try func(device, kept, empty int, left []block)
	try = func(device, kept, empty int, left []block) {
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

// drawLayout draws the present jobs of devices and blocks to lay out. With adjacent, each
// job holds adjacent devices.
func drawLayout(rng *rand.Rand, devices, jobs, most int, adjacent bool) (now []int, blocks []block) {
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
	if !adjacent {
		rng.Shuffle(devices, func(a, b int) { now[a], now[b] = now[b], now[a] })
	}
	room := devices
	for _, id := range rng.Perm(jobs) {
		if n := 1 + rng.IntN(most); n <= room && rng.IntN(5) > 0 {
			blocks = append(blocks, block{id, n})
			room -= n
		}
	}
	return now, blocks
}

// checkLayout checks that blocks do not overlap, and returns how many devices stay with
// their jobs.
func checkLayout(t *testing.T, now []int, blocks []block, at []int) (keeps int) {
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

// On few devices layOut keeps nearly as many devices as the best of all layouts.
func TestLayOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kept, most := 0, 0
	for i := range 6000 {
		now, blocks := drawLayout(rng, 1+rng.IntN(11), 1+rng.IntN(6), 1+rng.IntN(5), i%3 > 0)
		at, keeps := layOut(now, blocks)
		if got := checkLayout(t, now, blocks, at); got != keeps {
			t.Fatalf("%v on %v: %v keeps %d, layOut returned %d", blocks, now, at, got, keeps)
		}
		kept, most = kept+keeps, most+bestLayout(now, blocks)
	}
	if kept > most || float64(kept) < 0.96*float64(most) {
		t.Errorf("%d devices of %d stay with their jobs", kept, most)
	}
}

// drawNext draws the present jobs of devices and the blocks of a next schedule: most jobs
// stay, some end, are doubled or halved, and others arrive.
func drawNext(rng *rand.Rand, devices, most int) (now []int, blocks []block) {
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
			blocks = append(blocks, block{id, n})
			room -= n
		}
	}
	for id := devices; room > 0; id++ {
		n := min(1<<rng.IntN(4), room)
		blocks = append(blocks, block{id, n})
		room -= n
	}
	return now, blocks
}

// On successive schedules layOut keeps about as many devices as an exact search. The
// results of that search on these draws are listed.
func TestLayOutOfSuccessors(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		devices, most, draws int
		exact                float64 // part of the devices that an exact search keeps
		least                float64 // part of these
	}{{64, 4, 300, 0.753, 0.93}, {64, 8, 300, 0.745, 0.96}, {64, 16, 300, 0.730, 0.98}, {64, 32, 300, 0.754, 0.99}, {1024, 16, 10, 0.671, 1}, {1024, 64, 10, 0.7, 0.995}} {
		kept := 0
		for range c.draws {
			now, blocks := drawNext(rng, c.devices, c.most)
			at, keeps := layOut(now, blocks)
			if got := checkLayout(t, now, blocks, at); got != keeps {
				t.Fatalf("%v on %v: %v keeps %d, layOut returned %d", blocks, now, at, got, keeps)
			}
			kept += keeps
		}
		got := float64(kept) / float64(c.draws*c.devices)
		t.Logf("%+v: %.4f of the exact", c, got/c.exact)
		if got < c.least*c.exact {
			t.Errorf("%+v: %.3f of the devices stay with their jobs", c, got)
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
