package stats

import (
	"hash/fnv"
	"math/rand/v2"
)

// Stream returns the random numbers of a seed and a name. Each use has its own name, so that another use, or
// more numbers drawn by one, changes no others.
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
