package device

import (
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// From these shares on the CPU was not there for what was measured. The lower
// one is a warning, the higher one a doubt. A step that waits for the slowest of
// its processes loses about the share that is taken from one of them.
const (
	contentionWarn, contentionDoubt = 0.05, 0.15 // of the CPUs the measured processes can use, taken by others
	stealWarn, stealDoubt           = 0.02, 0.10 // of CPU time
	quotaWarn, quotaDoubt           = 0.01, 0.05 // of the time, held back by a CPU quota
)

// busyMachine is the share of all CPUs that others may use before it is a
// warning although CPUs were free: caches and memory bandwidth are shared.
const busyMachine = 0.25

// judge says what the CPU was through from one time to another. Others contend
// when they use more CPUs than the measured processes leave free; what they use
// beyond that, as a share of what the measured processes can use, is compared
// with contentionWarn and contentionDoubt. Time stolen by the hypervisor, CPU
// quotas of the control group and thermal throttling count too. Energy is not
// measured.
func (p *cpuProbe) judge(from, to time.Time) Watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, to, timed := window(from, to)
	if !timed && len(p.busy.points) > 0 {
		from, to = p.busy.points[0].at, p.busy.last.at
	}
	v := newVerdict()
	seconds := to.Sub(from).Seconds()
	busy, ours := p.busy.rise(from, to)/seconds, p.measured.rise(from, to)/seconds
	if math.IsNaN(busy) || math.IsNaN(ours) || seconds <= 0 {
		if timed {
			v.note(profiler.EnvWarning, "the CPU was not watched in the timed part")
		}
		return v.watched()
	}
	others := max(busy-ours, 0)
	v.env[EnvCPUUsed], v.env[EnvCPUOthers] = share(ours), share(others)
	p.judgeContention(v, others)
	steal := p.steal.rise(from, to) / (seconds * float64(p.cpus))
	v.env[EnvCPUSteal] = share(steal)
	v.weigh(profiler.EnvShared, steal, stealWarn, stealDoubt, "the hypervisor gave %.0f %% of CPU time to others")
	v.weigh(profiler.EnvThrottle, p.throttled.spread(from, to)/seconds, quotaWarn, quotaDoubt, "a CPU quota held processes back %.0f %% of the time")
	if n := p.heat.spread(from, to); n > 0 {
		v.doubt(profiler.EnvThrottle, fmt.Sprintf("the CPU was slowed down for heat %.0f times", math.Ceil(n)))
	}
	if s := p.clock.within(from, to).stats[smClock]; s.n > 0 {
		v.env[EnvCPUClock] = number(s.mean())
	}
	return v.watched()
}

// judgeContention weighs the CPUs that others kept busy.
func (p *cpuProbe) judgeContention(v *verdict, others float64) {
	all := float64(p.cpus)
	want := min(p.want, all)
	taken := others - (all - want)
	v.weigh(profiler.EnvShared, taken/want, contentionWarn, contentionDoubt,
		fmt.Sprintf("others used %.2f CPUs of %d, which took %%.0f %%%% of the %.0f measured on", others, p.cpus, want))
	if taken/want < contentionWarn && others/all >= busyMachine {
		v.note(profiler.EnvWarning, fmt.Sprintf("others used %.2f CPUs of %d; caches and memory are shared", others, p.cpus))
	}
}

// weigh compares a share with two bounds. text takes it in percent.
func (v *verdict) weigh(key string, share, warn, doubt float64, text string) {
	switch text = fmt.Sprintf(text, 100*share); {
	case share >= doubt:
		v.doubt(key, text)
	case share >= warn: // not if it is NaN
		v.note(profiler.EnvWarning, text)
	}
}

// spread is rise for a counter read so seldom that a window may end before the
// next reading or begin after the last: the window is widened to both.
func (c *curve) spread(from, to time.Time) float64 {
	if d := c.rise(from, to); !math.IsNaN(d) {
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
	return c.rise(from, to)
}

func share(v float64) string { return fmt.Sprintf("%.3f", v) }
