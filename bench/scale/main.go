package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	runtime.GOMAXPROCS(1)
	var o options
	flag.IntVar(&o.nodes, "nodes", 12500, "nodes, half of them of the fast type")
	flag.IntVar(&o.perNode, "devices", 8, "devices per node")
	flag.IntVar(&o.jobs, "jobs", 1_000_000, "jobs")
	flag.Float64Var(&o.load, "load", 0.95, "offered load")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the workload")
	flag.StringVar(&o.policies, "policy", "fifo-backfill,srtf,las:round=300", "policies, with round=SECONDS for those that decide in rounds")
	flag.StringVar(&o.figure, "figure", "", "measure clusters of about 100 to 100,000 devices instead, and draw the cost of an event into scale.svg in this `directory`")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a profile to this file")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

type options struct {
	scale
	policies, figure, profile string
}

func run(ctx context.Context, w io.Writer, o options) (err error) {
	if o.nodes < 2 || o.perNode < 1 || o.jobs < 1 {
		return fmt.Errorf("%d nodes of %d devices and %d jobs: want at least 2, 1 and 1", o.nodes, o.perNode, o.jobs)
	}
	contenders, err := parseContenders(o.policies)
	if err != nil {
		return err
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if o.figure != "" {
		return figure(ctx, w, o, contenders)
	}
	_, err = table(ctx, w, o.scale, contenders)
	return err
}

// table simulates the workload under each policy and prints the costs.
func table(ctx context.Context, w io.Writer, s scale, contenders []contender) ([]outcome, error) {
	jobs, err := s.workload()
	if err != nil {
		return nil, err
	}
	var out []outcome
	fmt.Fprintf(w, "%d jobs on %d nodes of %d devices, load %g, seed %d\n", len(jobs), s.nodes, s.perNode, s.load, s.seed)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tprocessor s\tus per event\tmean queue\tmean JCT s\tfinished\tpeak GiB\t")
	for _, c := range contenders {
		r, err := s.simulate(ctx, jobs, c)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
		fmt.Fprintf(t, "%s\t%.1f\t%.2f\t%.3f\t%.1f\t%d\t%.2f\t\n", c, r.sec, r.micros(), r.queue, r.meanJCTSec, r.finished, r.peak/(1<<30))
	}
	return out, t.Flush()
}

// used returns the processor time and the peak memory, in bytes, of this process.
func used() (time.Duration, float64, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), float64(u.Maxrss) * 1024, err
}
