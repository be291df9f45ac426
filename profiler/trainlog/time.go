package trainlog

import (
	"cmp"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Timing is the step times of a log.
type Timing struct {
	// StepSec has one value per line of the log: the mean of the steps since the line before.
	StepSec  []float64
	From, To int // the steps, from 1, that they are of: after From, to To
	Warnings []string
}

// Check returns an error if the log contradicts a plan, samples of seq tokens, or a number of steps; 0 steps = any.
// The first warmup steps may have smaller batches, as those of a ramp-up.
func (l *Log) Check(p spec.Plan, seq, steps, warmup int) error {
	p = p.Normal()
	micro, accum := l.MicroBatch, l.AccumSteps
	if l.Format == Torchtitan && p.PP > 1 { // the micro-batches of its pipelines are parts of the local batch
		micro, accum = 0, 0
	}
	for _, c := range []struct {
		what      string
		log, plan int
	}{
		{"samples per step", l.GlobalBatch, p.GlobalBatch()},
		{"samples per micro-batch", micro, p.MicroBatch},
		{"tokens per sample", l.SeqLen, seq},
		{"micro-batches per step", accum, p.AccumSteps},
		{"training steps", l.Total, steps},
		{"data-parallel replicas", l.DP, p.DP},
		{"tensor-parallel ranks", l.TP, p.TP},
		{"pipeline stages", l.PP, p.PP},
		{"context-parallel ranks", l.CP, p.CP},
	} {
		if c.log > 0 && c.plan > 0 && c.log != c.plan {
			return fmt.Errorf("trainlog: the log of %s has %d %s, the plan %s has %d", l.Format, c.log, c.what, p, c.plan)
		}
	}
	for _, line := range l.Lines {
		if line.Step > warmup && line.GlobalBatch > 0 && line.GlobalBatch != p.GlobalBatch() {
			return fmt.Errorf("trainlog: step %d in the log of %s has %d samples per step, the plan %s has %d", line.Step, l.Format, line.GlobalBatch, p, p.GlobalBatch())
		}
	}
	return nil
}

// Time returns the step times of plan p on samples of seq tokens, after the first warmup steps and at most timed of
// them, 0 = all. A line that is also of steps of the warm-up is left out. Without other lines it is the mean of the
// whole training.
func (l *Log) Time(p spec.Plan, seq, warmup, timed int) (t Timing, err error) {
	p = p.Normal()
	if timed <= 0 {
		timed = math.MaxInt - warmup
	}
	unit := 1
	if l.Format == Lightning {
		unit = p.AccumSteps
	}
	before, lines := 0, l.Lines
	if len(lines) > 0 && lines[0].bar.sec > 0 {
		lines = l.barLines(warmup * unit)
	}
	for i, line := range lines {
		from, to := before, line.Step/unit
		if i == 0 && len(lines) > 1 {
			from = max(0, to-(lines[1].Step-line.Step)/unit) // a single line may be of the warm-up too
		}
		before = to
		sec := l.stepSec(line, p, seq) * float64(unit)
		if from < warmup || to > warmup+timed || to <= from || !(sec > 0) || math.IsInf(sec, 0) {
			continue
		}
		if len(t.StepSec) == 0 {
			t.From = from
		}
		t.To, t.StepSec = to, append(t.StepSec, sec)
	}
	switch {
	case len(t.StepSec) > 0:
		l.crossCheck(&t)
	case l.RunSteps > 0 && l.RunSec > 0 && (len(lines) == 0 || lines[0].bar.sec > 0):
		t.StepSec, t.To = []float64{l.RunSec / float64(l.RunSteps)}, l.RunSteps
		t.Warnings = append(t.Warnings, "the step time is the mean of the whole training, its start included")
	default:
		return t, fmt.Errorf("trainlog: the log of %s has no line that is only of steps %d and later", l.Format, warmup+1)
	}
	return t, nil
}

// stepSec returns the seconds of a step that a line says.
func (l *Log) stepSec(line Line, p spec.Plan, seq int) float64 {
	batch := float64(p.GlobalBatch())
	switch {
	case line.Sec > 0:
		return line.Sec
	case line.Samples > 0:
		return batch / line.Samples
	case line.Tokens > 0:
		return batch * float64(cmp.Or(seq, l.SeqLen)) / float64(p.Devices()) / line.Tokens
	}
	return 0
}

// maxDifference is the relative difference above which the printed rate is not believed.
const maxDifference = 0.1

// crossCheck compares the printed rates with the times at which their lines were printed. DeepSpeed's rates have
// counted micro-batches as steps in some releases; then the times count. So they do where the rate is the mean since
// the start.
func (l *Log) crossCheck(t *Timing) {
	var clock []float64
	var last *Line
	for i := range l.Lines {
		line := &l.Lines[i]
		if line.Step < t.From || line.Step > t.To || line.At.IsZero() {
			continue
		}
		if last != nil {
			if sec := line.At.Sub(last.At).Seconds(); sec > 0 {
				clock = append(clock, sec/float64(line.Step-last.Step))
			}
		}
		last = line
	}
	if len(clock) == 0 {
		return
	}
	said, was := stats.Median(t.StepSec), stats.Median(clock)
	if l.Lines[0].mean {
		t.StepSec = clock
		return
	}
	if math.Abs(said/was-1) <= maxDifference {
		return
	}
	t.StepSec = clock
	t.Warnings = append(t.Warnings, fmt.Sprintf("the log says %.4g s per step, but its lines are %.4g s apart: the latter is taken", said, was))
}
