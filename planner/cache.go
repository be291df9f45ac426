package planner

import (
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// requestKey is a Request by content: comparable, without the pointer.
type requestKey struct {
	r    Request
	plan spec.Plan
	has  bool
}

func keyOf(r Request) requestKey {
	k := requestKey{r: r}
	k.r.Top = 0
	if r.Plan != nil {
		k.plan, k.has, k.r.Plan = r.Plan.Normal(), true, nil
	}
	return k
}

// cache keeps the answers used most recently, between size and 2·size of them:
// two generations, the older dropped when the younger is full. What it holds
// never changes an answer. Safe for concurrent use.
type cache[K comparable, V any] struct {
	mu       sync.Mutex
	size     int
	new, old map[K]V
}

func newCache[K comparable, V any](size int) *cache[K, V] {
	return &cache[K, V]{size: size, new: map[K]V{}}
}

func (c *cache[K, V]) get(k K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.new[k]; ok {
		return v, true
	}
	v, ok := c.old[k]
	if ok {
		c.store(k, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(k, v)
}

func (c *cache[K, V]) store(k K, v V) {
	if len(c.new) >= c.size {
		c.old, c.new = c.new, make(map[K]V, c.size)
	}
	c.new[k] = v
}

// take adds what from holds and is wanted.
func (c *cache[K, V]) take(from *cache[K, V], wanted func(K, V) bool) {
	from.mu.Lock()
	defer from.mu.Unlock()
	for _, generation := range []map[K]V{from.old, from.new} {
		for k, v := range generation {
			if wanted(k, v) {
				c.put(k, v)
			}
		}
	}
}
