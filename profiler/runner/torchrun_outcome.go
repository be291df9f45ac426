package runner

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// An ending is how the worker of one point ended.
type ending struct {
	exit     profiler.Exit
	result   worker.Result
	noResult error         // why there is no result
	timeout  time.Duration // the limit there was
	log      string
	// outOfMemoryKill: the kernel killed some process of this machine for
	// want of memory meanwhile.
	outOfMemoryKill bool
}

// judge sets the outcome of m. In this order: a rank that ran out of memory
// says so; all steps measured are a result, though the worker then hung; any
// other timeout is one, whatever was written; a result says what it is;
// without one, or where its ranks only say that another was gone, the way it
// ended is all there is.
func (e ending) judge(m *spec.Measurement) {
	r, told := e.result, e.noResult == nil
	switch {
	case told && r.Outcome == spec.OOM:
		m.Outcome, m.Reason = spec.OOM, r.Reason
	case e.exit.TimedOut && (!told || r.Outcome != spec.OK || r.World != m.Config.Plan.Devices()):
		m.Outcome, m.Reason = spec.Timeout, fmt.Sprintf("did not end within %s and was killed", e.timeout)
	case told && r.LostPeer:
		m.Outcome, m.Reason = e.untold("a process was gone (" + r.Reason + ")")
	case told && r.Outcome == spec.Failed:
		m.Outcome, m.Reason = spec.Failed, r.Reason
	case told && r.World != m.Config.Plan.Devices():
		m.Outcome = spec.Failed
		m.Reason = fmt.Sprintf("ran on %d devices, plan %s is for %d", r.World, m.Config.Plan, m.Config.Plan.Devices())
	case told:
		m.Outcome = spec.OK
	case errors.Is(e.noResult, worker.ErrNoResult):
		m.Outcome, m.Reason = e.untold("no result")
	default:
		m.Outcome, m.Reason = spec.Failed, fmt.Sprintf("%v (%s)", e.noResult, status(e.exit))
	}
	if m.Outcome != spec.OK {
		m.Env[profiler.EnvLog] = e.log
		return
	}
	switch {
	case e.exit.TimedOut:
		warn(m, fmt.Sprintf("after writing its result the worker hung: it did not end within %s and was killed", e.timeout))
	case e.exit.Code != 0:
		warn(m, "after writing its result the worker ended badly: "+status(e.exit))
	}
	if e.exit.Stray > 0 {
		warn(m, fmt.Sprintf("%d processes were left behind and killed", e.exit.Stray))
	}
}

// untold is the outcome of a worker that ended by itself and did not say what
// happened; what begins the reason.
func (e ending) untold(what string) (spec.Outcome, string) {
	switch {
	case !e.sigkilled():
		return spec.Failed, what + ": " + status(e.exit)
	case e.outOfMemoryKill:
		return spec.OOM, "killed by the kernel for want of host memory"
	}
	return spec.Failed, what + ": killed by SIGKILL, but the kernel counts no kill for want of memory: somebody else did it"
}

// sigkill finds, in torchrun's report, a process that SIGKILL ended.
var sigkill = regexp.MustCompile(`SIGKILL|exitcode *: *-9\b`)

// sigkilled reports whether the worker, or a process of it, got SIGKILL; where
// no time ran out that was not from its executor.
func (e ending) sigkilled() bool {
	return e.exit.Signal == "killed" || sigkill.MatchString(e.exit.Tail)
}

// describe copies what the worker measured and used into m.
func (t *Torchrun) describe(m *spec.Measurement, r worker.Result) {
	for key, v := range map[string]string{"torch": r.Torch, "cuda": r.CUDA, "blas": r.BLAS, "python": r.Python} {
		if v != "" {
			m.Env[key] = v
		}
	}
	for key, v := range r.Notes {
		m.Env["used_"+key] = v
	}
	if r.Parameters > 0 {
		m.Env["params"] = number(r.Parameters)
	}
	if m.Outcome != spec.OK {
		return
	}
	m.StepSec, m.PhaseSec, m.PeakBytes = r.StepSec, r.PhaseSec, r.PeakBytes
	m.Env[profiler.EnvReserved] = number(r.ReservedBytes)
	if r.HalfWidth > 0 {
		m.Env[profiler.EnvHalfWidth] = number(r.HalfWidth)
	}
	m.Env["warmup_steps"] = strconv.Itoa(len(r.WarmupSec))
	m.Env["warmup_stopped"], m.Env["steps_stopped"] = r.WarmupStopped, r.Stopped
	m.Env["loss_first"], m.Env["loss_last"] = number(r.LossFirst), number(r.LossLast)
	p := m.Config.Plan
	if flops := m.Config.Model.TrainFLOPs(m.Config.Seq()) * m.Throughput() / float64(p.Devices()); flops > 0 {
		m.Env[profiler.EnvFLOPS] = number(flops)
	}
	if why := t.noise(r); why != "" {
		m.Env[profiler.EnvNoise] = why
	}
}

// noise says why the median step time is not as sharp as wanted, "" if it is.
func (t *Torchrun) noise(r worker.Result) string {
	n := len(r.StepSec)
	switch {
	case r.HalfWidth == 0 && n < 6: // interval.py
		return fmt.Sprintf("%d steps are too few for an interval; stopped by %s", n, r.Stopped)
	case r.HalfWidth > t.point.Interval:
		return fmt.Sprintf("95 %% interval of the median step time is +-%.1f %% after %d steps, wanted +-%.1f %%; stopped by %s",
			100*r.HalfWidth, n, 100*t.point.Interval, r.Stopped)
	case r.WarmupStopped != "steady":
		return fmt.Sprintf("not steady after %d steps of warm-up; stopped by %s", len(r.WarmupSec), r.WarmupStopped)
	}
	return ""
}

// addWatched adds what was seen of the devices. Energy is per step.
func addWatched(m *spec.Measurement, w Watched) {
	for key, text := range w.Env {
		if key == profiler.EnvWarning {
			warn(m, text)
			continue
		}
		m.Env[key] = text
	}
	if m.Outcome != spec.OK {
		return
	}
	m.Doubt = w.Doubt
	if w.EnergyJoules > 0 {
		m.Env[profiler.EnvEnergy] = number(w.EnergyJoules / float64(len(m.StepSec)))
	}
	if w.AvgWatts > 0 {
		m.Env["power_w"] = number(w.AvgWatts)
	}
}

func warn(m *spec.Measurement, what string) {
	if have := m.Env[profiler.EnvWarning]; have != "" {
		what = have + "; " + what
	}
	m.Env[profiler.EnvWarning] = what
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// status says how a command ended, in words.
func status(e profiler.Exit) string {
	if e.Signal != "" {
		return "ended by signal " + strconv.Quote(e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// lastLine returns the last line of text that has anything on it.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// oomKills returns how many processes the kernel of this machine has killed for
// want of memory since it started, 0 where it does not say (proc(5), vmstat).
func oomKills() int {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(v))
			return n
		}
	}
	return 0
}
