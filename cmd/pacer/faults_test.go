package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// faultPlanner is a pacer serve that is killed, hangs, and comes back at its address.
type faultPlanner struct {
	t           *testing.T
	pacer, data string
	*serving    // nil = killed
	url         string
	hangs       bool
}

func startFaultPlanner(t *testing.T, pacer string) *faultPlanner {
	p := &faultPlanner{t: t, pacer: pacer, data: t.TempDir()}
	p.serving = startServing(t, pacer, p.data)
	p.url = p.serving.url
	return p
}

// down kills or stops the process.
func (p *faultPlanner) down(hang bool) {
	if p.serving == nil || p.hangs {
		return
	}
	if p.hangs = hang; hang {
		p.signal(syscall.SIGSTOP)
		return
	}
	p.signal(syscall.SIGKILL)
	<-p.done
	_ = p.cmd.Wait()
	p.serving = nil
}

// up lets the process go on, or starts another.
func (p *faultPlanner) up() {
	if p.hangs {
		p.hangs = false
		p.signal(syscall.SIGCONT)
	}
	if p.serving == nil {
		p.serving = startServing(p.t, p.pacer, p.data, "--listen", strings.TrimPrefix(p.url, "http://"))
	}
}

func (p *faultPlanner) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

// faultPolicies are those of random faults, by seed. Jobs say that they have more work than they do: it pays to change them.
var faultPolicies = []string{"fifo", "srtf", "gavel-las", "optimus:interval=1", "rubick", "sia", "pacer"}

// faultPacer runs one pacer schedule after the other. Each is killed after some of its writes.
type faultPacer struct {
	t        *testing.T
	rng      *rand.Rand
	args     []string
	env      []string
	starting func(writes int) // called before each start, nil = none

	mu      sync.Mutex
	process *os.Process // nil = none
	left    int         // writes until it is killed
	log     strings.Builder
	kills   int
	fails   int // processes that ended otherwise
	silent  int // times that one found the planner not answering
}

// startPacers starts one pacer schedule that asks p, two with odd seeds, until ctx is done. set adds what its engine needs.
func (p *faultPlanner) startPacers(ctx context.Context, all *sync.WaitGroup, engine, policy string, seed uint64, set func(*faultPacer)) (out faultPacers) {
	for i := range 1 + seed%2 {
		f := &faultPacer{t: p.t, rng: rand.New(rand.NewPCG(seed, 7+i))}
		f.args = []string{"--data", p.t.TempDir(), "schedule", "--on", engine, "--policy", policy, "--start-cost", "1s", "--server", p.url}
		set(f)
		out = append(out, f)
		all.Go(func() { f.run(ctx, p.pacer) })
	}
	return out
}

// run starts processes until ctx is done.
func (p *faultPacer) run(ctx context.Context, pacer string) {
	for ctx.Err() == nil {
		writes := 1 + p.rng.IntN(7)
		if p.starting != nil {
			p.starting(writes)
		}
		cmd := exec.CommandContext(ctx, pacer, p.args...)
		cmd.Env = append(os.Environ(), p.env...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			if ctx.Err() == nil {
				p.t.Error(err)
			}
			return
		}
		p.mu.Lock()
		p.process, p.left = cmd.Process, writes
		p.mu.Unlock()
		err := cmd.Wait()
		p.mu.Lock()
		p.process = nil
		p.silent += strings.Count(out.String(), "warning: the server does not answer")
		fmt.Fprintf(&p.log, "pacer %d\n%s%v\n", cmd.Process.Pid, out.String(), err)
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		killed := ok && status.Signal() == syscall.SIGKILL
		if killed && ctx.Err() == nil {
			p.kills++
		}
		p.mu.Unlock()
		if strings.Contains(out.String(), "panic:") || err == nil && ctx.Err() == nil {
			p.t.Errorf("a pacer ended by itself: %s", out.String())
		}
		if !killed { // such as when the cluster is away as long as it starts
			p.fails++
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// written counts a write of the present process, and kills it after its last one.
func (p *faultPacer) written() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left--; p.left != 0 || p.process == nil {
		return
	}
	if err := p.process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

// faultPacers are the pacers of one schedule of faults.
type faultPacers []*faultPacer

// show logs what they printed if the test has failed.
func (all faultPacers) show(t *testing.T) {
	for _, p := range all {
		if t.Failed() {
			t.Logf("pacer:\n%s", p.log.String())
		}
	}
}

// ends returns how often they were killed, and says how they ended.
func (all faultPacers) ends() (kills int, text string) {
	fails, silent := 0, 0
	for _, p := range all {
		kills, fails, silent = kills+p.kills, fails+p.fails, silent+p.silent
	}
	return kills, fmt.Sprintf("%d kills of pacer, %d other ends, %d times without the planner", kills, fails, silent)
}
