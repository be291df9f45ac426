package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.pacer, "pacer", "bin/pacer", "the command to measure")
	flag.StringVar(&o.address, "address", "", "a running server to measure instead, host:port")
	flag.Float64Var(&o.rate, "rate", 10000, "requests per second")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "duration of the measurement")
	flag.DurationVar(&o.warm, "warm", 2*time.Second, "duration of the warm-up before it")
	flag.IntVar(&o.conns, "connections", 32, "kept connections")
	flag.StringVar(&o.load, "load", "", "time small plans beside a load instead: quiet, heavy (200 clients with long curves) or slow (1000 slow writers, 1000 slow readers)")
	flag.BoolVar(&o.check, "check", false, "send launch files to /v1/check in place of predictions")
	flag.BoolVar(&o.batch, "batch", false, "measure the processor time of batches of questions over HTTP and Arrow Flight, and of an export, instead")
	flag.BoolVar(&o.echo, "echo", false, "compare the processor time of predictions with that of a bare server of net/http instead")
	flag.IntVar(&o.questions, "questions", 0, "ask so many distinct questions again and again; 0 = all are distinct: for -echo alone")
	flag.BoolVar(&o.echoes, "echoes", false, "be that server: for -echo alone")
	flag.BoolVar(&o.hostile, "hostile", false, "measure the processor time of refused bodies of 8 MiB instead")
	flag.Parse()
	do := run
	if o.echoes {
		do = func(options) error { return echoes(os.Stdin, os.Stdout) }
	}
	if err := do(o); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

type options struct {
	pacer, address string
	rate           float64
	duration, warm time.Duration
	conns          int
	load           string
	hostile, check bool
	batch          bool
	echo, echoes   bool
	questions      int
}

func run(o options) error {
	if !(o.rate > 0 && o.rate <= 1e6) || o.duration <= 0 || o.warm < 0 || o.conns < 1 || o.questions < 0 {
		return errors.New("rate, duration and connections must be positive, and questions not negative")
	}
	if o.questions > 0 && !o.echo {
		return errors.New("-questions is for -echo alone")
	}
	if o.batch && o.address != "" {
		return errors.New("-batch starts a server of its own: it cannot be used with -address")
	}
	address, rpc := o.address, ""
	if address == "" {
		var stop func()
		var err error
		var more []string
		if o.batch { // no refit in the time of an export
			more = []string{"--refit", "0"}
		}
		if address, rpc, stop, err = start(o.pacer, more...); err != nil {
			return err
		}
		defer stop()
	}
	switch {
	case o.batch:
		return batchCosts(address, rpc)
	case o.echo:
		return againstEcho(o, address)
	case o.hostile:
		return hostile(address)
	case o.load != "":
		return abuse(o, address)
	}
	warm := int(o.rate * o.warm.Seconds())
	count := warm + int(o.rate*o.duration.Seconds())
	requests := newRequests(address, count)
	if o.check {
		requests = newChecks(address, count)
	}
	runtime.GC()
	before, err := used(address)
	if err != nil {
		return err
	}
	results, err := load(context.Background(), address, requests, o.rate, o.conns)
	if err != nil {
		return err
	}
	after, err := used(address)
	if err != nil {
		return err
	}
	report(os.Stdout, results[warm:], o)
	fmt.Printf("processor time per request: server %.1f us, client %.1f us\n", each(after.server-before.server, count), each(after.client-before.client, count))
	return nil
}

// each returns the mean of n in microseconds.
func each(total time.Duration, n int) float64 { return total.Seconds() * 1e6 / float64(n) }

var (
	listening = regexp.MustCompile(`listening on http://(\S+?),`)
	flights   = regexp.MustCompile(`gRPC and Arrow Flight on (\S+)`)
)

// start runs the server on free ports, over an empty store, with more flags. rpc is the address of gRPC.
func start(pacer string, more ...string) (address, rpc string, stop func(), err error) {
	data, err := os.MkdirTemp("", "serve")
	if err != nil {
		return "", "", nil, err
	}
	args := []string{"--data", data, "serve", "--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"}
	cmd := exec.Command(pacer, append(args, more...)...)
	cmd.Env = append(os.Environ(), "PACER_TOKEN=")
	errs, err := cmd.StderrPipe()
	if err != nil {
		return "", "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		os.RemoveAll(data)
	}
	for sc := bufio.NewScanner(errs); sc.Scan(); {
		if m := flights.FindStringSubmatch(sc.Text()); m != nil {
			rpc = m[1]
		}
		if m := listening.FindStringSubmatch(sc.Text()); m != nil {
			go func() { _, _ = io.Copy(os.Stderr, errs) }()
			return m[1], rpc, stop, nil
		}
		fmt.Fprintln(os.Stderr, sc.Text())
	}
	stop()
	return "", "", nil, fmt.Errorf("%s did not print its address", pacer)
}

// report prints the latencies after the warm-up.
func report(w io.Writer, results []time.Duration, o options) {
	what := "predictions"
	if o.check {
		what = "launch files"
	}
	fmt.Fprintf(w, "%g %s/s for %v over %d connections, all distinct; %d cores for client and server\n", o.rate, what, o.duration, o.conns, runtime.NumCPU())
	quantiles(w, results)
}

// quantiles prints how many requests were answered, and their latencies.
func quantiles(w io.Writer, results []time.Duration) {
	ok := slices.DeleteFunc(slices.Clone(results), func(r time.Duration) bool { return r == failure })
	slices.Sort(ok)
	fmt.Fprintf(w, "answered %d, failed %d\n", len(ok), len(results)-len(ok))
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		if len(ok) > 0 {
			fmt.Fprintf(w, "p%-5g %8.3f ms\n", 100*q, ok[min(int(q*float64(len(ok))), len(ok)-1)].Seconds()*1e3)
		}
	}
}
