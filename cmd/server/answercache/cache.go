package answercache

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"sync"
)

// Cache keeps answers to whole bodies, so that a repeated search costs no
// search. An answer is valid for one generation of the models.
type Cache struct {
	mu      sync.Mutex
	answers map[Key][]byte
	bytes   int
}

// Key is the hash of a request.
type Key [sha256.Size]byte

const (
	maxCached       = 32 << 20 // bytes of all cached answers
	maxCachedAnswer = 1 << 20  // bytes of one
)

// Key returns the key of a body sent to path while the models have a generation.
func (c *Cache) Key(path string, body []byte, generation uint64) (k Key) {
	h := sha256.New()
	h.Write(strconv.AppendUint(nil, generation, 10))
	h.Write([]byte(path + "\x00"))
	h.Write(body)
	h.Sum(k[:0])
	return k
}

// Get returns an answer, which must not be changed; nil = none.
func (c *Cache) Get(k Key) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[k]
}

// Put keeps a copy of answer, unless it is large. A full cache starts anew.
func (c *Cache) Put(k Key, answer []byte) {
	if len(answer) > maxCachedAnswer {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || c.bytes+len(answer) > maxCached {
		c.answers, c.bytes = map[Key][]byte{}, 0
	}
	c.bytes += len(answer)
	c.answers[k] = append([]byte{}, answer...)
}

// Recorder calls Keep with an answer of status 200 that is written at once.
type Recorder struct {
	http.ResponseWriter
	Keep   func([]byte)
	failed bool
}

func (w *Recorder) WriteHeader(status int) {
	w.failed = w.failed || status != http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

func (w *Recorder) Write(b []byte) (int, error) {
	if !w.failed {
		w.Keep(b)
		w.failed = true // the rest of the answer is not for the cache
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
