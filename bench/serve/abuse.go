package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// probePeriod is the time between the small plans that measure what others wait.
const probePeriod = 20 * time.Millisecond

// abuses are loads under which the small plans of another client are timed.
var abuses = map[string]func(ctx context.Context, address string) error{
	"quiet": func(ctx context.Context, _ string) error { <-ctx.Done(); return nil },
	"heavy": heavyClients,
	"slow":  slowClients,
}

// abuse times small plans under a load, every probePeriod of an open loop.
func abuse(o options, address string) error {
	load, ok := abuses[o.load]
	if !ok {
		return fmt.Errorf("-load %s is not quiet, heavy or slow", o.load)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- load(ctx, address) }()
	results := make([]time.Duration, int((o.warm+o.duration)/probePeriod))
	var wg sync.WaitGroup
	start := time.Now()
	for i := range results {
		due := start.Add(time.Duration(i) * probePeriod)
		time.Sleep(time.Until(due))
		wg.Go(func() {
			body := fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":%d}`, 8*(1+i))
			if results[i] = failure; ask(ctx, http.DefaultClient, address, "/v1/plan", body) == http.StatusOK {
				results[i] = time.Since(due)
			}
		})
	}
	wg.Wait()
	cancel()
	fmt.Printf("small plans, all distinct, every %v beside load %q\n", probePeriod, o.load)
	quantiles(os.Stdout, results[int(o.warm/probePeriod):])
	return <-ended
}

// ask posts a request and returns its status, 0 without an answer.
func ask(ctx context.Context, client *http.Client, address, path, body string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0
	}
	return answer.StatusCode
}

// heavyClients are 200 that ask for one long curve after another, all distinct.
func heavyClients(ctx context.Context, address string) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	status := map[int]int{}
	for i := range 200 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			for k := 0; ctx.Err() == nil; k++ {
				code := ask(ctx, client, address, "/v1/curve", fmt.Sprintf(`{"model":"llama3-70b","accelerator":"h100","max_devices":2048,"global_batch":%d}`, 64*(1+i+200*k)))
				mu.Lock()
				status[code]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	fmt.Println("long curves by status, 0 = unanswered at the end:", status)
	return nil
}

// slowClients are 1000 that send a body byte by byte, and 1000 that read a large answer so.
func slowClients(ctx context.Context, address string) error {
	slowly := func(step func() error) {
		for ctx.Err() == nil && step() == nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	question := `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full"}`
	body := `{"questions":[` + strings.Repeat(question+",", 999) + question + `]}`
	request := fmt.Appendf(nil, "POST /v1/predict/batch HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", address, len(body), body)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 2000 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return fmt.Errorf("client %d: %w", i+1, err)
		}
		stop := context.AfterFunc(ctx, func() { c.Close() })
		wg.Go(func() {
			defer stop()
			defer c.Close()
			if i%2 == 0 {
				rest := request
				slowly(func() error {
					_, err := c.Write(rest[:1])
					rest = rest[1:]
					return err
				})
			} else if _, err := c.Write(request); err == nil {
				slowly(func() error { _, err := c.Read(make([]byte, 1)); return err })
			}
		})
	}
	<-ctx.Done()
	return nil
}

// hostile reports the processor time of the server for each of the largest bodies that it refuses.
func hostile(address string) error {
	fill := func(head, item, tail string) string {
		return head + strings.Repeat(item+",", (8<<20-len(head)-len(tail)-len(item))/(len(item)+1)) + item + tail
	}
	for _, b := range [][3]string{
		{"questions without fields", "/v1/predict/batch", fill(`{"questions":[`, `{}`, `]}`)},
		{"unknown fields", "/v1/predict", fill(`{`, `"nosuch":1`, `}`)},
		{"a list of numbers", "/v1/measurements", fill(`{"measurements":[{"step_sec":[`, `1`, `]}]}`)},
		{"a list of wrong numbers", "/v1/plan", fill(`{"zero":[`, `9`, `]}`)},
		{"nested lists", "/v1/plan", strings.Repeat("[", 8<<20)},
		{"one long text", "/v1/predict", `{"model":"` + strings.Repeat("x", 8<<20-12) + `"}`},
		{"escapes", "/v1/predict", `{"model":"` + strings.Repeat(`\u0041`, (8<<20-12)/6) + `"}`},
		{"digits", "/v1/plan", `{"devices":` + strings.Repeat("1", 8<<20-12) + `}`},
	} {
		runtime.GC()
		const times = 5
		before, err := used(address)
		if err != nil {
			return err
		}
		status := 0
		for range times {
			res, err := http.Post("http://"+address+b[1], "application/json", bytes.NewReader([]byte(b[2])))
			if err != nil {
				continue // refused before its end
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			status = res.StatusCode
		}
		after, err := used(address)
		if err != nil {
			return err
		}
		fmt.Printf("%-26s %d  %.3f CPU-s\n", b[0], status, (after.server-before.server).Seconds()/times)
	}
	return nil
}
