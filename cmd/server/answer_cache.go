package server

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"sync"
)

// answerCache keeps answers to whole bodies, so that a repeated search costs no
// search. An answer is valid for one generation of the models.
type answerCache struct {
	mu      sync.Mutex
	answers map[answerKey][]byte
	bytes   int
}

type answerKey [sha256.Size]byte

const (
	maxCached       = 32 << 20 // bytes of all cached answers
	maxCachedAnswer = 1 << 20  // bytes of one
)

func (c *answerCache) key(path string, body []byte, generation uint64) (k answerKey) {
	h := sha256.New()
	h.Write(strconv.AppendUint(nil, generation, 10))
	h.Write([]byte(path + "\x00"))
	h.Write(body)
	h.Sum(k[:0])
	return k
}

// get returns an answer, which must not be changed; nil = none.
func (c *answerCache) get(k answerKey) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[k]
}

// put keeps a copy of answer, unless it is large. A full cache starts anew.
func (c *answerCache) put(k answerKey, answer []byte) {
	if len(answer) > maxCachedAnswer {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || c.bytes+len(answer) > maxCached {
		c.answers, c.bytes = map[answerKey][]byte{}, 0
	}
	c.bytes += len(answer)
	c.answers[k] = append([]byte{}, answer...)
}

// answerRecorder calls keep with an answer of status 200 that is written at once.
type answerRecorder struct {
	http.ResponseWriter
	keep   func([]byte)
	failed bool
}

func (w *answerRecorder) WriteHeader(status int) {
	w.failed = w.failed || status != http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerRecorder) Write(b []byte) (int, error) {
	if !w.failed {
		w.keep(b)
		w.failed = true // the rest of the answer is not for the cache
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answerRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
