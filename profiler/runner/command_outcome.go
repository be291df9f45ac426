package runner

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/hook"
	"github.com/pacer-ml/pacer/profiler/trainlog"
)

// A commandExit describes the end of the command of one point.
type commandExit struct {
	spec    profiler.CommandSpec
	config  spec.Config
	exit    profiler.Exit
	timeout time.Duration
	stopped bool // ended by this process after its last step
	// outOfMemoryKill is as in workerExit.
	outOfMemoryKill bool

	processes []hook.Process
	timing    hook.Timing
	fromLog   bool  // timing is that of the log
	noTiming  error // why the hook has no step times

	log       trainlog.Log
	logged    bool // there is one
	logTiming trainlog.Timing
	refused   error // why the log contradicts the plan
}

// read reads what the hook wrote.
func (e *commandExit) read(out string) {
	if e.processes, e.noTiming = hook.Read(out); e.noTiming == nil {
		e.timing, e.noTiming = hook.Time(e.processes, e.config.Plan.Devices(), e.spec.WarmUp, e.spec.Timed)
	}
}

// readLog reads the step times of the log. They count if the hook saw no step; else the two are compared, unless the
// log is a progress bar that may count anything.
func (e *commandExit) readLog() {
	if !e.logged || e.log.Bare && len(e.processes) > 0 {
		return
	}
	c, steps := &e.config, 0
	if e.spec.EndsItself() {
		steps = e.spec.Steps()
	}
	if e.refused = e.log.Check(c.Plan, c.Seq(), steps, e.spec.WarmUp); e.refused != nil {
		return
	}
	var err error
	e.logTiming, err = e.log.Time(c.Plan, c.Seq(), e.spec.WarmUp, e.spec.Timed)
	if len(e.processes) > 0 {
		return
	}
	if err != nil {
		e.noTiming = err
		return
	}
	e.timing = hook.Timing{StepSec: e.logTiming.StepSec, Warnings: e.logTiming.Warnings}
	if e.log.Bare {
		e.timing.Warnings = append(e.timing.Warnings, "the steps are those of a progress bar, which may count something else")
	}
	e.timing.PeakBytes, e.timing.ReservedBytes = e.log.PeakBytes, e.log.ReservedBytes
	e.noTiming, e.fromLog = nil, true
}

// maxLogDifference is the relative difference between hook and log that is worth a warning.
const maxLogDifference = 0.01

// compareLog records how much the times of the log differ from those of the hook over the same steps.
func (e *commandExit) compareLog(m *spec.Measurement) {
	t := &e.logTiming
	if e.fromLog || len(t.StepSec) == 0 || t.To > len(e.timing.Steps) || t.From < 1 || t.To <= t.From {
		return
	}
	logged, timed := 0.0, 0.0
	for _, sec := range t.StepSec {
		logged += sec / float64(len(t.StepSec))
	}
	for _, s := range e.timing.Steps[t.From:t.To] {
		timed += s.Sec / float64(t.To-t.From)
	}
	m.Env[profiler.EnvLogDifference] = number(logged/timed - 1)
	if math.Abs(logged/timed-1) > maxLogDifference {
		warn(m, fmt.Sprintf("steps %d to %d took %.4g s in the mean, the log of %s says %.4g s", t.From+1, t.To, timed, e.log.Format, logged))
	}
}

// outOfMemory matches the messages of programs that ran out of memory: of PyTorch, its allocator on the CPU, CUDA and
// XLA.
var outOfMemory = regexp.MustCompile(`(?i)out of memory|OutOfMemoryError|can't allocate memory|\bMemoryError\b|RESOURCE_EXHAUSTED`)

// setOutcome sets the outcome of m. The first rule that applies wins: the steps were timed and are as many as
// wanted; a process or the log says that memory ran out; the timeout passed; the command failed or made other steps.
func (e *commandExit) setOutcome(m *spec.Measurement) {
	m.Outcome, m.Reason = e.outcome()
	if m.Outcome != spec.OK {
		m.Env[profiler.EnvLog] = e.exit.Tail
		if m.Outcome == spec.Failed && !e.complete() && endedFromOutside(e.exit) {
			m.Env[profiler.EnvExternal] = m.Reason
		}
		return
	}
	e.describe(m)
	switch {
	case e.stopped:
	case e.exit.TimedOut:
		warn(m, fmt.Sprintf("after its steps the command did not end within %s and was killed", e.timeout))
	case e.exit.Code != 0:
		warn(m, "after its steps the command failed: "+status(e.exit))
	}
	if n := e.exit.Stray; n > 0 && !e.stopped {
		warn(m, fmt.Sprintf("%d processes outlived the command and were killed", n))
	}
}

func (e *commandExit) outcome() (spec.Outcome, string) {
	if e.complete() {
		switch why := e.wrongSteps(); {
		case e.refused != nil:
			return spec.Failed, e.refused.Error()
		case why != "":
			return spec.Failed, why
		}
		return spec.OK, ""
	}
	for _, p := range e.processes {
		if p.OOM {
			return spec.OOM, fmt.Sprintf("rank %d: %s", p.Rank, p.Error)
		}
	}
	failed := e.exit.Code != 0 || e.exit.Signal != ""
	switch found := outOfMemory.FindString(e.exit.Tail); {
	case e.exit.TimedOut:
		return spec.Timeout, fmt.Sprintf("did not end within %s and was killed%s", e.timeout, e.made())
	case failed && found != "":
		return spec.OOM, fmt.Sprintf("%s; the log says %q", status(e.exit), found)
	case failed && e.outOfMemoryKill && (e.exit.Signal == "killed" || sigkill.MatchString(e.exit.Tail)):
		return spec.OOM, "killed by the kernel for lack of host memory"
	case failed:
		return spec.Failed, fmt.Sprintf("%s, last line %q%s", status(e.exit), lastLine(e.exit.Tail), e.made())
	}
	if e.refused != nil {
		return spec.Failed, e.refused.Error()
	}
	return spec.Failed, fmt.Sprintf("no step times: %v", cmp.Or(e.noTiming, fmt.Errorf("too few steps%s", e.made())))
}

// complete reports whether all steps to be timed were.
func (e *commandExit) complete() bool {
	return e.noTiming == nil && len(e.timing.StepSec) >= e.leastTimed()
}

// leastTimed is the number of timed steps below which a point is not measured. A command with {steps} makes
// fewer updates only if the loss scaling of fp16 skips some.
func (e *commandExit) leastTimed() int {
	if e.spec.EndsItself() && e.config.Plan.Precision == spec.FP16 {
		return (e.spec.Timed + 1) / 2
	}
	if e.fromLog || e.spec.EndsItself() && e.exit.Code == 0 && !e.exit.TimedOut {
		return 1 // a line of a log is of several steps; else wrongSteps compares all of them
	}
	return max(e.spec.Timed, 1)
}

// wrongSteps returns why the steps contradict the number that the command received, "" if they do not.
func (e *commandExit) wrongSteps() string {
	made, want := len(e.timing.Steps), e.spec.Steps()
	if e.fromLog || !e.spec.EndsItself() || made == want || made < want && e.config.Plan.Precision == spec.FP16 {
		return ""
	}
	return fmt.Sprintf("the command made %s, want %d (warmup_steps + timed_steps): is a step one optimizer update?",
		spec.Count(made, "training step"), want)
}

// made says how many steps the rank with fewest made.
func (e *commandExit) made() string {
	if len(e.processes) == 0 {
		return "; no optimizer step was seen"
	}
	least := len(e.processes[0].Steps)
	for _, p := range e.processes {
		least = min(least, len(p.Steps))
	}
	return fmt.Sprintf("; it made %d of %d training steps", least, e.spec.Steps())
}

// describe copies the step times and facts to m.
func (e *commandExit) describe(m *spec.Measurement) {
	t := &e.timing
	m.StepSec, m.PeakBytes = t.StepSec, t.PeakBytes
	for key, v := range map[string]string{profiler.EnvTorch: t.Torch, "cuda": t.CUDA, profiler.EnvPython: t.Python,
		"device_name": t.DeviceName, "optimizer": t.Optimizer} {
		if v != "" {
			m.Env[key] = v
		}
	}
	m.Env[profiler.EnvTiming] = "hook"
	switch {
	case e.fromLog:
		m.Env[profiler.EnvTiming] = string(e.log.Format)
		if m.PeakBytes > 0 {
			m.Env[spec.EnvMemKind] = "allocated"
		} else if m.PeakBytes = t.ReservedBytes; m.PeakBytes > 0 {
			m.Env[spec.EnvMemKind] = "reserved"
		}
	case t.Device == "cuda":
		m.Env[spec.EnvMemKind] = "allocated"
	}
	if share := t.Share(); share > 0 {
		m.Env[profiler.EnvHookShare] = number(share)
	}
	e.compareLog(m)
	if t.ReservedBytes > 0 {
		m.Env[profiler.EnvReserved] = number(t.ReservedBytes)
	}
	m.Env[profiler.EnvWarmUp] = strconv.Itoa(e.spec.WarmUp)
	if half := stats.MedianHalfWidth(m.StepSec); half > 0 {
		m.Env[profiler.EnvHalfWidth] = number(half)
	}
	c := m.Config
	if flops := c.Model.TrainFLOPs(c.Seq()) * m.Throughput() / float64(c.Plan.Devices()); flops > 0 {
		m.Env[profiler.EnvFLOPS] = number(flops)
	}
	for _, w := range append(t.Warnings, e.extra(c.Plan)) {
		if w != "" {
			warn(m, w)
		}
	}
}

// doubt returns why the steps cannot be those of the plan: a step that accumulates has a backward pass for each
// micro-batch. Recomputation and pipelines have more.
func (e *commandExit) doubt(p spec.Plan) string {
	p = p.Normal()
	if n, _ := e.backwards(); n > 0 && n < float64(p.AccumSteps) && p.PP == 1 {
		return fmt.Sprintf("a step has %g backward passes, plan %s has %d micro-batches", n, p, p.AccumSteps)
	}
	return ""
}

// extra returns that a step has more backward passes than micro-batches, "" if it has not or the plan is a reason for
// more. A program with several losses is one, too: this is no doubt.
func (e *commandExit) extra(p spec.Plan) string {
	p = p.Normal()
	if n, calls := e.backwards(); n > float64(p.AccumSteps) && calls == 1 && p.PP == 1 && p.Recompute == spec.RecomputeNone {
		return fmt.Sprintf("a step has %g backward passes, the plan has %s: is ga=%d right?", n, spec.Count(p.AccumSteps, "micro-batch"), p.AccumSteps)
	}
	return ""
}

// backwards returns the median backward passes and calls of optimizers of a timed step, 0 without steps of the hook.
func (e *commandExit) backwards() (passes, calls float64) {
	var all, called []float64
	for _, s := range e.timing.Steps[min(e.spec.WarmUp, len(e.timing.Steps)):] {
		all, called = append(all, float64(s.Backwards)), append(called, float64(s.Calls))
	}
	return stats.Median(all), stats.Median(called)
}
