package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// The echo is what a server of net/http costs that does no work: it decodes the requests of newRequests into a struct, and
// encodes an answer with the bytes of one of pacer.
type (
	echoRequest struct {
		Model       string `json:"model"`
		Accelerator string `json:"accelerator"`
		Plan        string `json:"plan"`
		Seq         int    `json:"seq"`
	}
	echoAnswer struct {
		Plans     []echoPlan `json:"plans"`
		Evaluated int        `json:"evaluated"`
		Fitting   int        `json:"fitting"`
		ElapsedS  float64    `json:"elapsed_s"`
	}
	echoPlan struct {
		Plan          string    `json:"plan"`
		Parts         spec.Plan `json:"plan_parts"`
		StepTimeS     float64   `json:"step_time_s"`
		StepTimeLoS   float64   `json:"step_time_lo_s"`
		StepTimeHiS   float64   `json:"step_time_hi_s"`
		SamplesPerS   float64   `json:"samples_per_s"`
		MemGiB        float64   `json:"mem_gib"`
		AllocatedGiB  float64   `json:"mem_allocated_gib"`
		ReservedGiB   float64   `json:"mem_reserved_gib"`
		Fits          bool      `json:"fits"`
		TFLOPsPerGPU  float64   `json:"tflops_per_gpu"`
		Devices       int       `json:"devices"`
		GlobalBatch   int       `json:"global_batch"`
		CostPerSample float64   `json:"cost_per_sample"`
		Goodput       float64   `json:"goodput_samples_per_s"`
		Shape         string    `json:"shape"`
		By            string    `json:"by"`
		Why           string    `json:"why,omitempty"`
		Verdict       string    `json:"verdict"`
		Warnings      []string  `json:"warnings"`
		MFU           float64   `json:"mfu"`
		HFU           float64   `json:"hfu"`
		TokensPerS    float64   `json:"tokens_per_s_per_device"`
		EnergyJ       float64   `json:"energy_j_per_sample"`
	}
)

// echoes serves the echo until the standard input ends. Its first line is the answer; it prints the address.
func echoes(in io.Reader, out io.Writer) error {
	lines := json.NewDecoder(in)
	var answer echoAnswer
	if err := lines.Decode(&answer); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/predict", func(w http.ResponseWriter, r *http.Request) {
		var q echoRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&answer) // the client may have disconnected
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		own, err := ownTime()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "process_cpu_seconds_total %g\n", own.Seconds())
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _, _ = io.Copy(io.Discard, in); srv.Close() }()
	fmt.Fprintln(out, l.Addr())
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// startEcho starts this program as the echo of an answer of the server at address.
func startEcho(address string) (echo string, stop func(), err error) {
	body := strings.NewReader(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,mb=1","seq":1024}`)
	res, err := http.Post("http://"+address+"/v1/predict", "application/json", body)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	sample, err := io.ReadAll(res.Body)
	if err != nil {
		return "", nil, err
	}
	var answer echoAnswer
	if err := json.Unmarshal(sample, &answer); err != nil {
		return "", nil, err
	}
	if again, err := json.Marshal(answer); err != nil || !bytes.Equal(again, bytes.TrimSpace(sample)) {
		return "", nil, fmt.Errorf("the echo answers %s, want %s", again, sample)
	}
	program, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(program, "-echoes")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { in.Close(); _ = cmd.Wait() }
	if _, err = in.Write(sample); err == nil {
		_, err = fmt.Fscanln(out, &echo)
	}
	if err != nil {
		stop()
	}
	return echo, stop, err
}

// echoRuns is the number of runs of each, in turn.
const echoRuns = 5

// againstEcho compares the processor time of predictions with that of the echo at the same rate, and reports the latency
// of predictions at 60 % of the highest rate of the echo.
func againstEcho(o options, address string) error {
	echo, stop, err := startEcho(address)
	if err != nil {
		return err
	}
	defer stop()
	count := o.count()
	ctx := context.Background()
	var times [2][]float64
	for run := range echoRuns {
		for i, at := range []string{address, echo} {
			requests := o.requests(at, run)
			before, err := used(at)
			if err != nil {
				return err
			}
			if _, err := load(ctx, at, requests, o.rate, o.conns); err != nil {
				return err
			}
			after, err := used(at)
			if err != nil {
				return err
			}
			times[i] = append(times[i], each(after.server-before.server, count))
		}
	}
	fmt.Printf("server us per request, %d alternating runs of %d at %g/s: pacer %.1f, echo %.1f\n", echoRuns, count, o.rate, times[0], times[1])
	pacer, bare := median(times[0]), median(times[1])
	fmt.Printf("medians: pacer %.1f us, echo %.1f us, ratio %.2f\n", pacer, bare, pacer/bare)
	start := time.Now()
	if _, err := load(ctx, echo, o.requests(echo, 0), 1e9, o.conns); err != nil {
		return err
	}
	rate := 0.6 * float64(count) / time.Since(start).Seconds()
	fmt.Printf("60 %% of the highest rate of the echo is %.0f/s\n", rate)
	results, err := load(ctx, address, o.requests(address, echoRuns), rate, o.conns)
	if err != nil {
		return err
	}
	quantiles(os.Stdout, results)
	return nil
}

// count returns the number of requests of a run.
func (o *options) count() int { return int(o.rate * o.duration.Seconds()) }

// requests returns those of a run. With o.questions, so many distinct ones repeat; else all of all runs are distinct.
func (o *options) requests(host string, run int) [][]byte {
	count := o.count()
	if o.questions == 0 {
		return newRequests(host, (run+1)*count)[run*count:]
	}
	distinct, out := newRequests(host, o.questions), make([][]byte, count)
	for i := range out {
		out[i] = distinct[i%len(distinct)]
	}
	return out
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.SortFunc(v, cmp.Compare[float64])
	return v[len(v)/2]
}
