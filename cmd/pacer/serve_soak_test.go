package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// inSoak is set by make soak, which may take hours.
var inSoak = os.Getenv("PACER_SOAK") != ""

// metric returns the value of a metric without labels.
func metric(t *testing.T, url, name string) float64 {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no metric %s in\n%s", name, text)
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// soakRequest sends request n of a mix: predictions, plans, pages of rows, a listing, and few measurements, which replace
// those of 100 configurations with other figures.
func soakRequest(url string, n int) error {
	method, path, body := http.MethodPost, "/v1/predict", ""
	k := n / 20 // of each kind
	switch n % 20 {
	case 0:
		path, body = "/v1/plan", fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":%d}`, 8*(1+k%500))
	case 1:
		method, path = http.MethodGet, "/v1/measurements/rows?limit=10"
	case 2:
		method, path = http.MethodGet, "/v1/models"
	case 3:
		path, body = "/v1/measurements", fmt.Sprintf(`{"measurements":[{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,ga=%d,zero=3,recompute=full","shape":"8"},"outcome":"ok","source":"soak","step_sec":[%g]}]}`, 1+k%100, 2*float64(1+k%100)*(1+float64(k/100%50)/100))
	default:
		body = fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full","seq":%d}`, 512+n%5000)
	}
	r, err := http.NewRequest(method, url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, res.StatusCode, answer)
	}
	return err
}

// TestE2EServerSoak loads a server with half of what it answers at most, for 20 minutes with PACER_SOAK set, else for
// some requests: no request fails, and memory, goroutines and file descriptors stay as they are.
func TestE2EServerSoak(t *testing.T) {
	duration, trial := 20*time.Minute, 4000
	if !inSoak {
		trial = 200
	}
	const workers = 8
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = workers
	s := startServing(t, selfAs(t, "pacer"), t.TempDir(), "--refit", "30s")
	var next, failed atomic.Int64
	run := func(more func(n int) bool) {
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for n := int(next.Add(1)); more(n); n = int(next.Add(1)) {
					if err := soakRequest(s.url, n); err != nil && failed.Add(1) < 10 {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	start := time.Now()
	run(func(n int) bool { return n <= trial })
	rate := float64(trial) / time.Since(start).Seconds() / 2
	type sample struct{ resident, goroutines, descriptors float64 }
	take := func() sample {
		return sample{metric(t, s.url, "process_resident_memory_bytes"), metric(t, s.url, "go_goroutines"), metric(t, s.url, "process_open_fds")}
	}
	var samples []sample
	const parts = 20
	for part := range parts {
		first, begin := int(next.Load()), time.Now()
		last := first + trial/parts
		if inSoak {
			last = first + int(rate*duration.Seconds()/parts)
		}
		run(func(n int) bool {
			if n > last {
				return false
			}
			if inSoak { // an open loop: a slow answer delays no later request of another worker
				time.Sleep(time.Until(begin.Add(time.Duration(float64(n-first) / rate * float64(time.Second)))))
			}
			return true
		})
		samples = append(samples, take())
		t.Logf("part %d: %d requests, %.0f MiB, %.0f goroutines, %.0f descriptors", part+1, next.Load(), samples[part].resident/(1<<20), samples[part].goroutines, samples[part].descriptors)
	}
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed", n, next.Load())
	}
	warm, end := samples[parts/4], samples[parts-1]
	if end.goroutines > warm.goroutines+2*workers || end.descriptors > warm.descriptors+2*workers {
		t.Errorf("%.0f goroutines and %.0f descriptors, at first %.0f and %.0f", end.goroutines, end.descriptors, warm.goroutines, warm.descriptors)
	}
	if inSoak && end.resident > 1.2*warm.resident+32<<20 {
		t.Errorf("%.0f MiB resident, at first %.0f", end.resident/(1<<20), warm.resident/(1<<20))
	}
	t.Logf("%.0f requests/s, half of the highest rate", rate)
	mustSignal(t, s.cmd.Process, syscall.SIGTERM)
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestE2ERefitSoak posts a measurement a second for ten minutes: models are never older than twice --refit.
// TestRefitUnderSteadyIngest does the same with a virtual clock.
func TestE2ERefitSoak(t *testing.T) {
	if !inSoak {
		t.Skip("takes ten minutes; PACER_SOAK is not set")
	}
	const refit = 30 * time.Second
	s := startServing(t, selfAs(t, "pacer"), t.TempDir(), "--refit", refit.String())
	worst := 0.0
	for i, start := 0, time.Now(); time.Since(start) < 10*time.Minute; i++ {
		if err := soakRequest(s.url, 3+20*i); err != nil {
			t.Error(err)
		}
		worst = max(worst, metric(t, s.url, "pacer_unfitted_seconds"))
		time.Sleep(time.Until(start.Add(time.Duration(i+1) * time.Second)))
	}
	fits := metric(t, s.url, `pacer_fits_total\{result="fitted"\}`)
	t.Logf("models were at most %.0f s behind, %.0f fits", worst, fits)
	if worst > 2*refit.Seconds() || fits < 10 {
		t.Errorf("models were %.0f s behind after %.0f fits, want at most %v", worst, fits, 2*refit)
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	_ = s.cmd.Wait()
}
