package sim

import (
	"hash/fnv"
	"math/rand/v2"
)

// stream returns the random stream of a seed and a name; each use has its own name.
func stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
