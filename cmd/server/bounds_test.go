package server

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/pacer-ml/pacer/cmd/server/bodycheck"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// hostile are bodies of about the most bytes, each refused.
func hostile(size int) map[string][2]string {
	fill := func(head, item, tail string) string {
		return head + strings.Repeat(item+",", (size-len(head)-len(tail)-len(item))/(len(item)+1)) + item + tail
	}
	var keys strings.Builder
	keys.WriteString(`{"model":"llama3-8b"`)
	for i := 0; keys.Len() < size-32; i++ {
		fmt.Fprintf(&keys, `,"k%d":1`, i)
	}
	keys.WriteString("}")
	return map[string][2]string{
		"questions":        {"/v1/predict/batch", fill(`{"questions":[`, `{}`, `]}`)},
		"unknown keys":     {"/v1/predict", keys.String()},
		"one key":          {"/v1/predict", fill(`{`, `"seq":-1`, `}`)},
		"keys of items":    {"/v1/predict/batch", fill(`{"questions":[`, `{"a":1,"b":1,"c":1,"d":1}`, `]}`)},
		"lists":            {"/v1/plan", fill(`{"zero":[`, `[]`, `]}`)},
		"numbers":          {"/v1/plan", fill(`{"zero":[`, `9`, `]}`)},
		"a list of none":   {"/v1/curve", fill(`{"nosuch":[`, `1`, `]}`)},
		"measurements":     {"/v1/measurements", fill(`{"measurements":[`, `{}`, `]}`)},
		"steps":            {"/v1/measurements", fill(`{"measurements":[{"step_sec":[`, `1`, `]}]}`)},
		"steps of objects": {"/v1/measurements", fill(`{"measurements":[{"step_sec":[`, `{}`, `]}]}`)},
		"environment":      {"/v1/measurements", fill(`{"measurements":[{"env":{`, `"a":"b"`, `}}]}`)},
		"no end":           {"/v1/fit", fill(`{"models":[`, `"m"`, `,`)},
		"deep":             {"/v1/fit", strings.Repeat("[", size)},
		"strings":          {"/v1/predict", `{"model":"` + strings.Repeat(`\u0041`, size/6-4) + `"}`},
		"oracle":           {"/v1/oracle/best", fill(`{"request":{"model":{"x":[`, `{}`, `]}}}`)},
	}
}

// usage returns the processor seconds of the process and all bytes that it allocated.
func usage(t *testing.T) (cpu float64, allocated uint64) {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), m.TotalAlloc
}

// Every refused body costs little, whatever is in it. Allocated bytes bound the growth
// of the heap from above.
func TestAbuseBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("counts memory, to which the race detector adds")
	}
	s := newServer(t, Options{})
	for name, c := range hostile(8 << 20) {
		cpu, allocated := usage(t)
		w := do(s, http.MethodPost, c[0], c[1])
		cpuAfter, allocatedAfter := usage(t)
		var p problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 400 && w.Code != 422 || len(p.Errors) == 0 || len(p.Errors) > bodycheck.MaxErrors || w.Body.Len() > 64<<10 {
			t.Errorf("%s: %d, %d bytes, %.300s", name, w.Code, w.Body.Len(), w.Body)
		}
		seconds, bytes := cpuAfter-cpu, allocatedAfter-allocated
		t.Logf("%-18s %.3f CPU-s %5.1f MiB %.100s", name, seconds, float64(bytes)/(1<<20), p.Errors[0])
		if bytes > 64<<20 {
			t.Errorf("%s: %d MiB allocated, want at most 64", name, bytes>>20)
		}
		if limit := spectest.Patience(200 * time.Millisecond).Seconds(); seconds > limit {
			t.Errorf("%s: %.2f s of processor time, want at most %.2f", name, seconds, limit)
		}
	}
}

// Shapes of many nodes are short in a request and long once they are read. Those of one request take little memory, and
// those of predictions that are kept too.
func TestAbuseShapes(t *testing.T) {
	if testing.Short() {
		t.Skip("counts memory, to which the race detector adds")
	}
	const known = `"model":"llama3-8b","accelerator":"h100"`
	bodies := func(list, item string) string {
		items := make([]string, 1000)
		for i := range items {
			items[i] = fmt.Sprintf(item, 1000000-i)
		}
		return fmt.Sprintf(`{%q:[%s]}`, list, strings.Join(items, ","))
	}
	s := newServer(t, Options{})
	for _, c := range []struct {
		name, path, body string
		status           int
		says             string // at the end of the answer
	}{
		{"names", "/v1/measurements", bodies("measurements", `{"config":{`+known+`,"plan":"dp=%[1]d","shape":"%[1]dx1"},"outcome":"oom","source":"s"}`), 413, "post fewer at a time"},
		{"objects", "/v1/measurements", bodies("measurements", `{"config":{`+known+`,"plan":"dp=%[1]d","shape":{"devices":"%[1]dx1"}},"outcome":"oom","source":"s"}`), 413, "post fewer at a time"},
		{"usual nodes", "/v1/measurements", bodies("measurements", `{"config":{`+known+`,"plan":"dp=%d"},"outcome":"oom","source":"s"}`), 413, "post fewer at a time"},
		{"questions", "/v1/predict/batch", bodies("questions", `{`+known+`,"plan":"dp=%d","per_node":1}`), 200, "ask about fewer plans at a time"},
		{"another shape", "/v1/predict/batch", bodies("questions", `{`+known+`,"plan":"dp=8","shape":"%[1]dx1048576"}`), 200, "has more than 1048576 devices"},
		{"unfit shape", "/v1/predict/batch", bodies("questions", `{`+known+`,"plan":"dp=8","shape":"%dx1"}`), 200, "ask about fewer plans at a time"},
	} {
		cpu, allocated := usage(t)
		w := do(s, http.MethodPost, c.path, c.body)
		cpuAfter, allocatedAfter := usage(t)
		if text := w.Body.String(); w.Code != c.status || !strings.Contains(text[max(0, len(text)-1500):], c.says) {
			t.Errorf("%s: %d, %.300s", c.name, w.Code, text)
		}
		t.Logf("%-13s %.2f CPU-s, %d MiB", c.name, cpuAfter-cpu, (allocatedAfter-allocated)>>20)
		if mib := (allocatedAfter - allocated) >> 20; mib > 256 {
			t.Errorf("%s: %d MiB allocated, want at most 256", c.name, mib)
		}
	}
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools keep what they have for one
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	for i := range 50 {
		do(s, http.MethodPost, "/v1/predict", fmt.Sprintf(`{%s,"plan":"dp=%d","per_node":1}`, known, 1000000-i))
	}
	if kept := live() - before; kept > 16<<20 {
		t.Errorf("after 50 predictions %d MiB more are kept, want at most 16", kept>>20)
	}
	runtime.KeepAlive(s)
}

// Every list of a request is read item by item: no schema has a keyword that the
// validator does not know.
func TestSchemasAreStreamed(t *testing.T) {
	s := newServer(t, Options{})
	for name, schema := range s.api.OpenAPI().Components.Schemas.Map() {
		if schema.OneOf != nil || schema.AllOf != nil || schema.Not != nil || schema.UniqueItems || schema.MinProperties != nil || schema.MaxProperties != nil || len(schema.DependentRequired) > 0 {
			t.Errorf("schema %s has a keyword that validate.go does not know", name)
		}
	}
}

func compressed(t *testing.T, encoding string, body []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&buf)
	if encoding == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&buf); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func doEncoded(s *Server, path, encoding, accept string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", encoding)
	r.Header.Set("Accept-Encoding", accept)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	checkContract(s, r, w)
	return w
}

// Compressed bodies are read, and bounded by their plain size.
func TestAbuseCompressedBodies(t *testing.T) {
	s := newServer(t, Options{MaxBody: 1 << 16})
	plain := []byte(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full"}`)
	for _, encoding := range []string{"gzip", "zstd"} {
		if w := doEncoded(s, "/v1/predict", encoding, "", compressed(t, encoding, plain)); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", encoding, w.Code, w.Body)
		}
		if w := doEncoded(s, "/v1/predict", encoding, "", compressed(t, encoding, make([]byte, 64<<20))); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s of 64 MiB: %d %s", encoding, w.Code, w.Body)
		}
		if w := doEncoded(s, "/v1/predict", encoding, "", plain); w.Code != http.StatusBadRequest {
			t.Errorf("no %s: %d %s", encoding, w.Code, w.Body)
		}
	}
	if w := doEncoded(s, "/v1/predict", "br", "", plain); w.Code != http.StatusUnsupportedMediaType || !strings.Contains(w.Body.String(), `\"br\"`) {
		t.Errorf("br: %d %s", w.Code, w.Body)
	}
	if n := s.memory.free.TryAcquire(s.o.MaxBuffered); !n {
		t.Error("finished requests hold memory")
	}
}

// Answers have the encoding that the client accepts.
func TestCompressedAnswers(t *testing.T) {
	s := newServer(t, Options{})
	body := []byte(`{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8,"top":50}`)
	plain := doEncoded(s, "/v1/plan", "", "", body)
	for _, encoding := range []string{"gzip", "zstd"} {
		w := doEncoded(s, "/v1/plan", "", encoding, body)
		if w.Header().Get("Content-Encoding") != encoding || w.Body.Len() >= plain.Body.Len()/2 {
			t.Errorf("%s: %q, %d bytes of %d", encoding, w.Header().Get("Content-Encoding"), w.Body.Len(), plain.Body.Len())
			continue
		}
		r, end, err := bodycheck.Decompressed(encoding, w.Body, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain.Body.Bytes()) { // the second answer is cached
			t.Errorf("%s: %v, %.200s", encoding, err, got)
		}
		end()
	}
}

// gated reads first, then tells that it was read, and waits for more before the rest.
type gated struct {
	first, rest io.Reader
	read, more  chan struct{}
	once        sync.Once
}

func (g *gated) Read(b []byte) (int, error) {
	if n, err := g.first.Read(b); n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	g.once.Do(func() { close(g.read) })
	<-g.more
	return g.rest.Read(b)
}

// The bodies of all requests share one budget. Requests beyond it are refused and
// those that hold it are answered.
func TestAbuseMemory(t *testing.T) {
	s := newServer(t, Options{MaxBody: 1 << 20, MaxBuffered: 1 << 20})
	const small = `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full"}`
	slow := &gated{first: strings.NewReader(strings.Repeat(" ", 1<<19)), rest: strings.NewReader(small), read: make(chan struct{}), more: make(chan struct{})}
	done := make(chan *httptest.ResponseRecorder)
	go func() {
		a := httptest.NewRecorder()
		s.Handler().ServeHTTP(a, httptest.NewRequest(http.MethodPost, "http://localhost/v1/predict", slow))
		done <- a
	}()
	<-slow.read
	big := strings.Repeat(" ", 1<<19+1<<18)
	if a := do(s, http.MethodPost, "/v1/predict", big); a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") == "" || !strings.Contains(a.Body.String(), problem.TypeOverloaded) {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if a := do(s, http.MethodPost, "/v1/predict", small); a.Code != http.StatusOK {
		t.Errorf("a small body: %d %s", a.Code, a.Body)
	}
	close(slow.more)
	if a := <-done; a.Code != http.StatusOK {
		t.Errorf("the slow body: %d %s", a.Code, a.Body)
	}
	if w := do(s, http.MethodPost, "/v1/predict", big); w.Code != http.StatusBadRequest {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// A backup, which is compressed, is sent as it is, and every answer says that it depends on what the client accepts.
func TestEncodings(t *testing.T) {
	s := newServer(t, Options{})
	if _, err := s.db.PutAll(t.Context(), rowfiletest.InventedRows(2000)...); err != nil {
		t.Fatal(err)
	}
	for _, accept := range []string{"", "gzip", "zstd, gzip"} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/v1/backup", strings.NewReader(""))
		if accept != "" {
			r.Header.Set("Accept-Encoding", accept)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		checkContract(s, r, w)
		if h := w.Header(); w.Code != http.StatusOK || h.Get("Content-Encoding") != "" || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("accepting %q: %d, %v", accept, w.Code, h)
		}
	}
}

// deadlines is an answer on a connection that counts how often its read deadline is removed.
type deadlines struct {
	*httptest.ResponseRecorder
	removed int
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		d.removed++
	}
	return nil
}

// The read deadline is removed before work that may take longer, and not for an answer from a kept plan.
func TestPatience(t *testing.T) {
	s := newServer(t, Options{})
	const question = `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full"}`
	for _, c := range []struct {
		path, body string
		patient    bool
	}{
		{"/v1/predict", question, true},
		{"/v1/predict", question, false}, // kept
		{"/v1/predict", `{"model":"llama3-8b"}`, true},
		{"/v1/plan", `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8}`, true},
		{"/v1/fit", `{}`, true},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		s.Handler().ServeHTTP(w, r)
		if (w.removed > 0) != c.patient {
			t.Errorf("%s %s: the deadline is removed %d times, want that: %v", c.path, c.body, w.removed, c.patient)
		}
	}
}
