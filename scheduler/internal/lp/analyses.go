package lp

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// analyses keeps the symbolic part of linear systems, their elimination order and pattern, for later programmes of the
// same pattern. A policy that solves a programme at each arrival states a few dozen patterns thousands of times. The
// factors are the same with and without. It is safe for concurrent use: a system is out of it while it is used.
type analyses struct {
	mu      sync.Mutex
	systems map[uint64][]*kkt // by patternHash
	entries int               // of all systems
}

// kept has the systems of this process.
var kept analyses

const (
	maxKept    = 1 << 22 // entries of the systems kept, of some 20 bytes each
	maxEntries = 10_000  // entries of the largest matrix kept
)

// size returns the number of entries of a system, which most of its memory is for.
func (k *kkt) size() int { return k.factor.Entries() + len(k.s.Idx) + len(k.coef) + len(k.a.Idx) }

var patternSeed = maphash.MakeSeed()

// patternHash returns a hash of the pattern of a and of its free columns.
func patternHash(a *sparse.Matrix, free []bool) uint64 {
	var h maphash.Hash
	h.SetSeed(patternSeed)
	maphash.WriteComparable(&h, a.Rows)
	for _, v := range [][]int{a.Ptr, a.Idx} {
		for _, x := range v {
			h.WriteByte(byte(x))
			h.WriteByte(byte(x >> 8))
			h.WriteByte(byte(x >> 16))
		}
	}
	for _, f := range free {
		if f {
			h.WriteByte(1)
		} else {
			h.WriteByte(0)
		}
	}
	return h.Sum64()
}

// take returns newKKT(a, free), with a kept analysis where there is one. release gives it back, to be called once.
func (c *analyses) take(a *sparse.Matrix, free []bool) (k *kkt, release func()) {
	if len(a.Idx) > maxEntries {
		return newKKT(a, free), func() {}
	}
	key := patternHash(a, free)
	if k = c.find(key, a, free); k != nil {
		k.a, k.free = a, free
	} else {
		k = newKKT(a, free)
	}
	return k, func() { c.keep(key, k) }
}

// find removes and returns a system with the pattern of a and free, nil if there is none.
func (c *analyses) find(key uint64, a *sparse.Matrix, free []bool) *kkt {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := c.systems[key]
	at := slices.IndexFunc(same, func(k *kkt) bool {
		return k.a.Rows == a.Rows && slices.Equal(k.a.Ptr, a.Ptr) && slices.Equal(k.a.Idx, a.Idx) && slices.Equal(k.free, free)
	})
	if at < 0 {
		return nil
	}
	k := same[at]
	c.systems[key] = slices.Delete(same, at, at+1)
	c.entries -= k.size()
	return k
}

// keep adds a system. If they are too many, it forgets the others.
func (c *analyses) keep(key uint64, k *kkt) {
	size := k.size()
	if size > maxKept {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.systems == nil || c.entries+size > maxKept {
		c.systems, c.entries = map[uint64][]*kkt{}, 0
	}
	c.systems[key] = append(c.systems[key], k)
	c.entries += size
}
