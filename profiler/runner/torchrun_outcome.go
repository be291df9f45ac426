package runner

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// A workerExit describes the end of the worker of one point.
type workerExit struct {
	exit     profiler.Exit
	result   worker.Result
	noResult error         // why there is no result
	timeout  time.Duration // Command.Timeout
	log      string
	// outOfMemoryKill: during the point, the kernel killed a process of this machine for lack of memory.
	outOfMemoryKill bool
}

// setOutcome sets the outcome of m. The first rule that applies wins: a rank reported that it ran out of
// memory; all steps were measured, even if the worker then hung; the timeout passed; the result file has an
// outcome. If there is no result, or its ranks only report that a peer was lost, the exit status of the process
// decides.
func (e workerExit) setOutcome(m *spec.Measurement) {
	r, reported, n := e.result, e.noResult == nil, m.Config.RunDevices()
	switch {
	case reported && r.Outcome == spec.OOM:
		m.Outcome, m.Reason = spec.OOM, r.Reason
	case e.exit.TimedOut && (!reported || r.Outcome != spec.OK || r.World != n):
		m.Outcome, m.Reason = spec.Timeout, fmt.Sprintf("did not end within %s and was killed", e.timeout)
	case reported && r.LostPeer:
		e.unexplained(m, "a process disappeared ("+r.Reason+")")
	case reported && r.Outcome == spec.Failed:
		m.Outcome, m.Reason = spec.Failed, r.Reason
	case reported && r.World != n:
		m.Outcome = spec.Failed
		m.Reason = fmt.Sprintf("ran on %d devices, plan %s is for %d", r.World, m.Config.Plan, n)
	case reported:
		m.Outcome = spec.OK
	case errors.Is(e.noResult, worker.ErrNoResult):
		e.unexplained(m, "no result")
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
		warn(m, "after writing its result the worker failed: "+status(e.exit))
	}
	if e.exit.Stray > 0 {
		warn(m, fmt.Sprintf("%d processes outlived the worker and were killed", e.exit.Stray))
	}
}

// unexplained sets the outcome of a worker that ended without giving a reason. what is the beginning of the reason.
func (e workerExit) unexplained(m *spec.Measurement, what string) {
	m.Outcome = spec.Failed
	switch {
	case !e.sigkilled():
		m.Reason = what + ": " + status(e.exit)
		if endedFromOutside(e.exit) {
			m.Env[profiler.EnvExternal] = m.Reason
		}
	case e.outOfMemoryKill:
		m.Outcome, m.Reason = spec.OOM, "killed by the kernel for lack of host memory"
	default:
		m.Reason = what + ": " + killedFromOutside
		m.Env[profiler.EnvExternal] = killedFromOutside
	}
}

// killedFromOutside is the reason of a SIGKILL that neither the executor nor the kernel sent.
const killedFromOutside = "killed by SIGKILL, but not by the kernel for lack of memory: another process sent it"

// sigkill matches, in torchrun's report, a process that was ended by SIGKILL, and sigterm torchrun that got SIGTERM.
var (
	sigkill = regexp.MustCompile(`SIGKILL|exitcode *: *-9\b`)
	sigterm = regexp.MustCompile(`got signal: 15\b`)
)

// sigkilled reports whether the worker or one of its processes got SIGKILL. Before the timeout, it was not the
// executor that sent it.
func (e workerExit) sigkilled() bool {
	return e.exit.Signal == "killed" || sigkill.MatchString(e.exit.Tail)
}

// endedFromOutside reports whether a command or one of its processes got SIGKILL or SIGTERM before the timeout. A shell
// adds 128 to the number of the signal.
func endedFromOutside(e profiler.Exit) bool {
	if e.TimedOut {
		return false
	}
	switch {
	case e.Signal == "killed", e.Signal == "terminated", e.Code == 128+int(syscall.SIGKILL), e.Code == 128+int(syscall.SIGTERM):
		return true
	}
	return sigkill.MatchString(e.Tail) || sigterm.MatchString(e.Tail)
}

// describe copies the results and properties of the worker to m.
func (t *Torchrun) describe(m *spec.Measurement, r worker.Result) {
	for key, v := range map[string]string{profiler.EnvTorch: r.Torch, "cuda": r.CUDA, "blas": r.BLAS, profiler.EnvPython: r.Python} {
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
	if !t.o.Machine.CPU {
		m.Env[spec.EnvMemKind] = string(stack.Allocated)
	}
	if r.HalfWidth > 0 {
		m.Env[profiler.EnvHalfWidth] = number(r.HalfWidth)
	}
	m.Env[profiler.EnvWarmUp] = strconv.Itoa(len(r.WarmupSec))
	m.Env["warmup_stopped"], m.Env["steps_stopped"] = r.WarmupStopped, r.Stopped
	if !m.Config.Alone() { // the losses of a rank alone mean nothing, and stages differ in their work
		m.Env["loss_first"], m.Env["loss_last"] = number(r.LossFirst), number(r.LossLast)
		p := m.Config.Plan
		if flops := m.Config.Model.TrainFLOPs(m.Config.Seq()) * m.Throughput() / float64(p.Devices()); flops > 0 {
			m.Env[profiler.EnvFLOPS] = number(flops)
		}
	}
	if why := t.noise(r); why != "" {
		m.Env[profiler.EnvNoise] = why
	}
}

// noise returns why the median step time is less precise than wanted, "" if it is precise enough.
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

// addObserved adds the observations of the Watcher. Energy is per step.
func addObserved(m *spec.Measurement, w Watched) {
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

// status describes how a command ended.
func status(e profiler.Exit) string {
	if e.Signal != "" {
		return "ended by signal " + strconv.Quote(e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// lastLine returns the last non-blank line of text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// oomKills returns the number of processes that the kernel has killed for lack of memory since boot, 0 if
// unknown (proc(5), vmstat). Package procfs does not read vmstat.
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
