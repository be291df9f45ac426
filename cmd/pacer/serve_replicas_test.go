package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/cmd/server/snapshot/s3test"
)

// TestE2ERollingRestart restarts a writer and two replicas, one after the other, while clients read through a round robin
// that follows /readyz and write with idempotency keys. No read fails; no acknowledged row is lost or stored twice, also
// where the writer is killed at last. PACER_SOAK=1 reads 1000 times a second and bounds the time without a write.
func TestE2ERollingRestart(t *testing.T) {
	testRollingRestart(t, "file://"+filepath.Join(t.TempDir(), "shared"))
}

// TestE2ERollingRestartS3 is TestE2ERollingRestart with a real S3 server between them.
func TestE2ERollingRestartS3(t *testing.T) {
	testRollingRestart(t, s3test.Start(t).URL("lab"))
}

func testRollingRestart(t *testing.T, bucket string) {
	reads := 50 // per second
	if os.Getenv("PACER_SOAK") != "" {
		reads = 1000
	}
	pacer := selfAs(t, "pacer")
	c := &rolling{t: t, pacer: pacer, bucket: bucket, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: time.Minute}}
	dir := t.TempDir()
	c.start(0, filepath.Join(dir, "writer"))
	c.start(1, filepath.Join(dir, "replica-1"))
	c.start(2, filepath.Join(dir, "replica-2"))
	stop, stopReading := make(chan struct{}), make(chan struct{})
	var clients, readers sync.WaitGroup
	clients.Go(func() { c.follow(stop) })
	for i := range c.servers {
		c.waitReady(i)
	}
	began := time.Now()
	readers.Go(func() { c.read(reads, stopReading) })
	writers := [2]writes{}
	for i := range writers {
		clients.Go(func() { writers[i] = c.write(i, stop) })
	}

	for i, data := range []string{"replica-1", "replica-2"} {
		c.restart(1+i, filepath.Join(dir, data), syscall.SIGTERM)
	}
	c.restart(0, filepath.Join(dir, "writer"), syscall.SIGTERM)
	c.restart(0, filepath.Join(dir, "another-machine"), syscall.SIGTERM) // all that it has is from the object store
	c.refuses()
	reading := time.Since(began)
	close(stopReading) // those that a killed server has not answered fail
	readers.Wait()
	gap := time.Duration(c.gap.Load())
	c.restart(0, filepath.Join(dir, "another-machine"), syscall.SIGKILL)
	close(stop)
	clients.Wait()

	if c.failed.Load() > 0 || c.answered.Load() == 0 {
		t.Errorf("%d of %d reads failed, the last: %s", c.failed.Load(), c.answered.Load()+c.failed.Load(), *cmp.Or(c.failure.Load(), new(string)))
	}
	acked := 0
	for _, w := range writers {
		acked += len(w.acked)
		for _, text := range w.wrong {
			t.Error(text)
		}
	}
	for i := range c.servers {
		c.holds(i, writers[:])
	}
	t.Logf("%d reads answered in %.0f s, %d rows acknowledged, longest time without one %v", c.answered.Load(), reading.Seconds(), acked, gap)
	if os.Getenv("PACER_SOAK") != "" && gap > 5*time.Second {
		t.Errorf("no row was acknowledged for %v, want at most 5 s", gap)
	}
}

// rolling is a writer, server 0, and its replicas behind a round robin.
type rolling struct {
	t             *testing.T
	pacer, bucket string
	client        *http.Client

	mu      sync.Mutex
	servers [3]*serving
	urls    [3]string // of servers that are ready; "" = it is not
	writer  atomic.Pointer[string]

	next             atomic.Int64
	answered, failed atomic.Int64
	failure          atomic.Pointer[string]
	gap              atomic.Int64 // longest time between two acknowledged rows of a client, nanoseconds
}

// shutdownDelay is the time in which the round robin must see that a server is no longer ready.
const shutdownDelay = 4 * time.Second

func (c *rolling) start(i int, data string) {
	c.t.Helper()
	flags := []string{"--shutdown-delay", shutdownDelay.String(), "--publish", c.bucket}
	if i > 0 {
		flags = []string{"--shutdown-delay", shutdownDelay.String(), "--replica-of", c.bucket, "--replica-poll", "100ms"}
	}
	s := startServing(c.t, c.pacer, data, flags...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers[i] = s
	if i == 0 {
		c.writer.Store(&s.url)
	}
}

// follow keeps urls as /readyz says.
func (c *rolling) follow(stop <-chan struct{}) {
	for {
		for i := range c.servers {
			c.mu.Lock()
			url := c.servers[i].url
			c.mu.Unlock()
			if status, err := c.get(url + "/readyz"); err != nil || status != http.StatusOK {
				url = ""
			}
			c.mu.Lock()
			c.urls[i] = url
			c.mu.Unlock()
		}
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *rolling) get(url string) (int, error) {
	answer, err := c.client.Get(url)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

func (c *rolling) waitReady(i int) {
	c.t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c.mu.Lock()
		ready := c.urls[i] != "" && c.urls[i] == c.servers[i].url
		c.mu.Unlock()
		if ready {
			return
		}
		if time.Now().After(until) {
			c.t.Fatalf("server %d is not ready after two minutes", i)
		}
	}
}

// restart ends server i and starts it again once it has ended.
func (c *rolling) restart(i int, data string, sig os.Signal) {
	c.t.Helper()
	c.mu.Lock()
	s := c.servers[i]
	c.mu.Unlock()
	_ = s.cmd.Process.Signal(sig)
	<-s.done
	if err := s.cmd.Wait(); (err == nil) != (sig == syscall.SIGTERM) {
		c.t.Errorf("server %d: %v: %s", i, err, s.last)
	}
	c.start(i, data)
	c.waitReady(i)
}

// pick returns the next server that is ready.
func (c *rolling) pick() string {
	for {
		c.mu.Lock()
		for range c.urls {
			if url := c.urls[int(c.next.Add(1))%len(c.urls)]; url != "" {
				c.mu.Unlock()
				return url
			}
		}
		c.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// read sends questions at a rate per second, whether or not those before are answered.
func (c *rolling) read(rate int, stop <-chan struct{}) {
	ticks, began := time.NewTicker(2*time.Millisecond), time.Now()
	defer ticks.Stop()
	var open sync.WaitGroup
	defer open.Wait()
	for sent := 0; ; {
		select {
		case <-stop:
			return
		case <-ticks.C:
		}
		for due := int(time.Since(began).Seconds() * float64(rate)); sent < due; sent++ {
			n := sent
			open.Go(func() {
				if err := c.ask(n); err != nil {
					text := err.Error()
					c.failed.Add(1)
					c.failure.Store(&text)
					return
				}
				c.answered.Add(1)
			})
		}
	}
}

// ask sends one question.
func (c *rolling) ask(n int) error {
	url := c.pick()
	if n%10 == 0 {
		status, err := c.get(url + "/v1/measurements")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}
	body := fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,mb=2,ga=%d,zero=3,recompute=full"}`, 1+n%8)
	answer, err := c.client.Post(url+"/v1/predict", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// writes are what one client wrote.
type writes struct {
	acked []string // origins
	wrong []string
}

// write posts row after row to the writer, each with its key until it is acknowledged.
func (c *rolling) write(client int, stop <-chan struct{}) (out writes) {
	last := time.Now()
	for n := 0; ; n++ {
		origin := fmt.Sprintf("%d-%d", client, n)
		body := fmt.Sprintf(`{"measurements":[{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,ga=4,zero=3","shape":"8"},"outcome":"ok","step_sec":[%d.5],"source":"rolling","origin":%q}]}`, 1+n%7, origin)
		for {
			select {
			case <-stop:
				return out
			default:
			}
			stored, ok := c.post(body, "key "+origin)
			if !ok {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			if stored.Added != 1 {
				out.wrong = append(out.wrong, fmt.Sprintf("row %s: %+v: it was stored before, under no key", origin, stored))
			}
			break
		}
		out.acked = append(out.acked, origin)
		if took := int64(time.Since(last)); took > c.gap.Load() {
			c.gap.Store(took) // the other client sees the same gaps
		}
		last = time.Now()
	}
}

func (c *rolling) post(body, key string) (out server.Stored, ok bool) {
	r, err := http.NewRequest(http.MethodPost, *c.writer.Load()+"/v1/measurements", strings.NewReader(body))
	if err != nil {
		return out, false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	answer, err := c.client.Do(r)
	if err != nil {
		return out, false
	}
	defer answer.Body.Close()
	return out, answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(&out) == nil
}

// refuses checks that a replica refuses to store, and names the writer.
func (c *rolling) refuses() {
	c.t.Helper()
	c.mu.Lock()
	url := c.servers[1].url
	c.mu.Unlock()
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // until it knows the last one
		answer, err := c.client.Post(url+"/v1/measurements", "application/json", strings.NewReader(servedRows))
		if err != nil {
			c.t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusMisdirectedRequest {
			c.t.Fatalf("%s %s", answer.Status, text)
		}
		if strings.Contains(string(text), *c.writer.Load()) {
			return
		}
		if time.Now().After(until) {
			c.t.Fatalf("it does not name the writer %s: %s", *c.writer.Load(), text)
		}
	}
}

// holds checks that server i has each acknowledged row once; a replica may need a moment.
func (c *rolling) holds(i int, all []writes) {
	c.t.Helper()
	var lost, twice []string
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		found := map[string]int{}
		for cursor := ""; ; {
			var page server.Rows
			answer, err := c.client.Get(c.servers[i].url + "/v1/measurements/rows?limit=1000&source=rolling&cursor=" + cursor)
			if err != nil {
				c.t.Fatal(err)
			}
			err = json.NewDecoder(answer.Body).Decode(&page)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK {
				c.t.Fatalf("server %d: %s, %v", i, answer.Status, err)
			}
			for _, r := range page.Rows {
				found[r.Measurement.Origin]++
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		lost, twice = nil, nil
		for _, w := range all {
			for _, origin := range w.acked {
				if found[origin] == 0 {
					lost = append(lost, origin)
				} else if found[origin] > 1 {
					twice = append(twice, origin)
				}
			}
		}
		if len(lost)+len(twice) == 0 {
			return
		}
		if i == 0 || time.Now().After(until) {
			c.t.Errorf("server %d: %d acknowledged rows lost, %d twice: %q %q", i, len(lost), len(twice), lost[:min(len(lost), 5)], twice[:min(len(twice), 5)])
			return
		}
	}
}

// TestE2EGuideOfReplicas runs the commands of the guide, with free ports and a temporary directory.
func TestE2EGuideOfReplicas(t *testing.T) {
	_, section, _ := strings.Cut(fileText(t, filepath.Join(moduleDir(t), "docs/guides/serve.md")), "\n## Scale\n")
	_, block, _ := strings.Cut(section, "```console\n")
	block, _, _ = strings.Cut(block, "```")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d commands of %q", len(lines), block)
	}
	dir, urls := t.TempDir(), []string{}
	for _, line := range lines {
		words := strings.Fields(strings.ReplaceAll(line, "/srv/pacer", dir))
		if len(words) < 5 || words[0] != "pacer" || words[1] != "--data" || words[3] != "serve" {
			t.Fatalf("another form: %s", line)
		}
		flags := strings.Fields(strings.ReplaceAll(strings.Join(words[4:], " "), "127.0.0.1:8471", "127.0.0.1:0"))
		urls = append(urls, startServing(t, selfAs(t, "pacer"), filepath.Join(dir, words[2]), flags...).url)
	}
	c := &rolling{t: t, client: http.DefaultClient}
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if status, err := c.get(urls[1] + "/readyz"); err == nil && status == http.StatusOK {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the replica is not ready after a minute")
		}
	}
	c.servers[1], c.servers[0] = &serving{url: urls[1]}, &serving{url: urls[0]}
	c.writer.Store(&urls[0])
	c.refuses()
}
