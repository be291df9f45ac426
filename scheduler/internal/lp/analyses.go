package lp

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// analyses keeps the symbolic part of linear systems, their elimination order and pattern, for later programmes of the
// same pattern. A policy that solves a programme at each arrival states a few dozen patterns thousands of times. The
// factors are the same with and without.
var analyses = struct {
	sync.Mutex
	systems map[uint64][]*kkt
	count   int
}{systems: map[uint64][]*kkt{}}

const (
	maxAnalyses = 256    // kept at most
	maxEntries  = 10_000 // entries of the largest matrix kept
)

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

// takeKKT returns newKKT(a, free), with a kept analysis where there is one. release gives it back.
func takeKKT(a *sparse.Matrix, free []bool) (k *kkt, release func()) {
	if len(a.Idx) > maxEntries {
		return newKKT(a, free), func() {}
	}
	key := patternHash(a, free)
	analyses.Lock()
	kept := analyses.systems[key]
	at := slices.IndexFunc(kept, func(k *kkt) bool {
		return k.a.Rows == a.Rows && slices.Equal(k.a.Ptr, a.Ptr) && slices.Equal(k.a.Idx, a.Idx) && slices.Equal(k.free, free)
	})
	if at >= 0 {
		k = kept[at]
		analyses.systems[key] = slices.Delete(kept, at, at+1)
		analyses.count--
	}
	analyses.Unlock()
	if k == nil {
		k = newKKT(a, free)
	} else {
		k.a, k.free = a, free
	}
	return k, func() {
		analyses.Lock()
		defer analyses.Unlock()
		if analyses.count >= maxAnalyses {
			clear(analyses.systems)
			analyses.count = 0
		}
		analyses.systems[key] = append(analyses.systems[key], k)
		analyses.count++
	}
}
