package planner

import (
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// requestKey is a comparable Request: the plan by value.
type requestKey struct {
	r    Request
	plan spec.Plan
	has  bool
}

func keyOf(r Request) requestKey {
	k := requestKey{r: r}
	k.r.Top, k.r.TopMisses = 0, 0
	if r.Plan != nil {
		k.plan, k.has, k.r.Plan = r.Plan.Normal(), true, nil
	}
	return k
}

// cache keeps the most recently used answers, between size and 2·size by weight,
// in two generations; the older is dropped when the younger is full. Answers
// heavier than size are not kept. Safe for concurrent use.
type cache[K comparable, V any] struct {
	weigh    func(K, V) int
	size     int
	mu       sync.Mutex
	new, old map[K]V
	weight   int // of new
}

func newCache[K comparable, V any](size int, weigh func(K, V) int) *cache[K, V] {
	return &cache[K, V]{weigh: weigh, size: size, new: map[K]V{}}
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
	w := c.weigh(k, v)
	if w > c.size {
		return
	}
	if _, again := c.new[k]; again {
		return // stored by another goroutine
	}
	if c.weight+w > c.size {
		c.old, c.new, c.weight = c.new, map[K]V{}, 0
	}
	c.new[k] = v
	c.weight += w
}

// take adds the wanted entries of from.
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
