package device

import (
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// Limits of interference with the measured processes: the lower limit gives a warning, the higher one a doubt.
// A step waits for its slowest process, so the share of time taken from one process is about the share that the
// step loses.
const (
	contentionWarn, contentionDoubt = 0.05, 0.15 // of the CPUs the measured processes can use
	stealWarn, stealDoubt           = 0.02, 0.10 // of CPU time
	quotaWarn, quotaDoubt           = 0.01, 0.05 // of the time, held back by a CPU quota
)

// busyMachine is the share of all CPUs from which use by other processes gives a warning even if CPUs stayed
// free, because caches and memory bandwidth are shared.
const busyMachine = 0.25

// judge summarises the CPU from one time to another. Other processes contend if they use more CPUs than the
// measured ones leave free. The excess, as a share of the CPUs that the measured processes can use, is compared
// with contentionWarn and contentionDoubt. Time stolen by the hypervisor, CPU quotas of the control group and
// thermal throttling are judged too. Energy is not measured.
func (p *cpuProbe) judge(from, to time.Time) Watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, to, timed := window(from, to)
	if !timed && len(p.busy.points) > 0 {
		from, to = p.busy.points[0].at, p.busy.last.at
	}
	v := newVerdict()
	seconds := to.Sub(from).Seconds()
	busy, ours := p.busy.increase(from, to)/seconds, p.measured.increase(from, to)/seconds
	if math.IsNaN(busy) || math.IsNaN(ours) || seconds <= 0 {
		if timed {
			v.note(profiler.EnvWarning, "the CPU was not watched in the timed part")
		}
		return v.watched()
	}
	others := max(busy-ours, 0)
	v.env[EnvCPUUsed], v.env[EnvCPUOthers] = share(ours), share(others)
	p.judgeContention(v, others)
	steal := p.steal.increase(from, to) / (seconds * float64(p.cpus))
	v.env[EnvCPUSteal] = share(steal)
	v.weigh(profiler.EnvShared, steal, stealWarn, stealDoubt, "the hypervisor gave %.0f %% of CPU time to other machines")
	v.weigh(profiler.EnvThrottle, p.throttled.increaseAround(from, to)/seconds, quotaWarn, quotaDoubt, "a CPU quota stopped processes %.0f %% of the time")
	if n := p.temperature.increaseAround(from, to); n > 0 {
		v.doubt(profiler.EnvThrottle, fmt.Sprintf("the CPU was slowed down for heat %.0f times", math.Ceil(n)))
	}
	if s := p.clock.within(from, to).stats[smClock]; s.n > 0 {
		v.env[EnvCPUClock] = number(s.mean())
	}
	return v.watched()
}

// judgeContention compares the CPU use of other processes with the limits.
func (p *cpuProbe) judgeContention(v *verdict, others float64) {
	all := float64(p.cpus)
	want := min(p.want, all)
	taken := others - (all - want)
	v.weigh(profiler.EnvShared, taken/want, contentionWarn, contentionDoubt,
		fmt.Sprintf("other processes used %.2f CPUs of %d and took %%.0f %%%% of the %.0f that the measurement needs", others, p.cpus, want))
	if taken/want < contentionWarn && others/all >= busyMachine {
		v.note(profiler.EnvWarning, fmt.Sprintf("other processes used %.2f CPUs of %d; caches and memory are shared", others, p.cpus))
	}
}

// weigh compares a share with two bounds. text formats it in percent.
func (v *verdict) weigh(key string, share, warn, doubt float64, text string) {
	switch text = fmt.Sprintf(text, 100*share); {
	case share >= doubt:
		v.doubt(key, text)
	case share >= warn: // false for NaN
		v.note(profiler.EnvWarning, text)
	}
}

// increaseAround is increase for a counter that is read rarely: it widens a window between readings to the
// nearest ones.
func (c *counter) increaseAround(from, to time.Time) float64 {
	if d := c.increase(from, to); !math.IsNaN(d) {
		return d
	}
	if len(c.points) == 0 || c.last.at.Before(from) || c.points[0].at.After(to) {
		return math.NaN()
	}
	if from.Before(c.points[0].at) {
		from = c.points[0].at
	}
	if to.After(c.last.at) {
		to = c.last.at
	}
	return c.increase(from, to)
}

func share(v float64) string { return fmt.Sprintf("%.3f", v) }
