package profiler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// memorySink keeps rows in a slice. Put fails after limit rows.
type memorySink struct {
	rows  []spec.Measurement
	limit int // 0 = none
}

var errFull = errors.New("no space left")

func (s *memorySink) Put(_ context.Context, ms ...spec.Measurement) error {
	if s.limit > 0 && len(s.rows)+len(ms) > s.limit {
		return fmt.Errorf("sink: %w", errFull)
	}
	s.rows = append(s.rows, ms...)
	return nil
}

// clock advances only when a lab adds time.
type clock struct{ t time.Time }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time       { return c.t }
func (c *clock) pass(seconds float64) { c.t = c.t.Add(time.Duration(seconds * float64(time.Second))) }

// lab is a Runner with step times by law. Every point takes 4 s plus its steps.
type lab struct {
	clock   *clock
	outcome func(c spec.Config) spec.Outcome // nil = all OK
	before  func(run int) error              // called with the number of runs so far
	runs    int
}

// law returns the step time of c, with noise that depends only on c.
func law(c spec.Config) float64 {
	p := c.Plan.Normal()
	work := c.Model.TrainFLOPs(c.Seq()) * float64(p.GlobalBatch()) / float64(p.Devices()) / 2e10
	if p.Recompute == spec.RecomputeFull {
		work *= 1.3
	}
	comm := 0.0
	if p.Devices() > 1 {
		comm = c.Model.Params() * 4 / 2e9
	}
	h := fnv.New64a()
	fmt.Fprint(h, c.Model.Name, p, c.Seq())
	return (work + comm + 0.01) * math.Exp(0.04*(float64(h.Sum64()%1000)/500-1))
}

func (l *lab) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	if l.before != nil {
		if err := l.before(l.runs); err != nil {
			return spec.Measurement{}, err
		}
	}
	l.runs++
	m := spec.Measurement{Config: c, Outcome: spec.OK, Env: map[string]string{"seen": "yes"}}
	if l.outcome != nil {
		m.Outcome = l.outcome(c)
	}
	if m.Outcome != spec.OK {
		m.Reason = "as the test wants it"
		l.clock.pass(4)
		return m, ctx.Err()
	}
	t := law(c)
	m.StepSec = []float64{t, t * 1.01, t * 0.99}
	l.clock.pass(4 + 3*t)
	return m, nil
}

// tinyModel returns a model that is small enough for any machine.
func tinyModel(name string, heads int) spec.Model {
	return spec.Model{Name: name, Kind: spec.Decoder, Layers: 4, Hidden: 128, FFN: 512, Heads: heads, Vocab: 512, SeqLen: 64}
}

// cpuMachine returns one node with n devices that are processes.
func cpuMachine(n int) Machine {
	m := Machine{
		Accelerator: spec.Accelerator{Name: "TestCPU", FP32: 5e10, MemBytes: 4 * memory.GiB, MemBps: 1e10},
		PerNode:     n, CPUs: n, HostBytes: 8 * memory.GiB, Framework: "pacer-torch", CPU: true,
		Link: spec.Link{IntraBps: 2e9}, Env: map[string]string{"torch": "1.13"},
	}
	for i := range n {
		m.Devices = append(m.Devices, i)
	}
	return m
}

func numbersOf(rows []spec.Measurement) []int {
	out := make([]int, len(rows))
	for i, m := range rows {
		out[i], _ = strconv.Atoi(m.Env[EnvPoint])
	}
	return out
}
