package runner

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/hook"
	"github.com/pacer-ml/pacer/profiler/trainlog"
)

// Observation is what a training run showed that trains for its own sake and not for a campaign: all steps after the
// warm-up count.
type Observation struct {
	Config spec.Config
	WarmUp int           // steps that are not timed
	Hook   string        // directory of hook.Out, "" = the hook did not run
	Log    *trainlog.Log // nil = none
	Exit   profiler.Exit
}

// Measurement returns the row, without a source. Its outcome is Failed if there are no step times or the log
// contradicts the configuration. Doubt says what of the hook contradicts it.
func (o Observation) Measurement() spec.Measurement {
	m := spec.Measurement{Config: o.Config, At: time.Now().UTC(), Env: map[string]string{}}
	end := commandExit{spec: profiler.CommandSpec{WarmUp: o.WarmUp}, config: o.Config, exit: o.Exit}
	if o.Hook != "" {
		end.read(o.Hook)
	}
	if o.Log != nil {
		end.log, end.logged = *o.Log, true
		end.readLog()
	}
	end.setOutcome(&m)
	if m.Outcome == spec.OK {
		m.Doubt = cmp.Or(end.doubt(o.Config.Plan), contradiction(&end.timing, &o.Config))
		if text := change(m.StepSec); text != "" {
			warn(&m, text)
		}
	}
	return m
}

// maxChange is the difference between the logarithms of the step times of two halves of a run, beyond their noise,
// that is worth a warning.
const maxChange = 0.1

// change returns that the steps became slower or faster during a run, "" if they did not: their median is neither
// speed then.
func change(sec []float64) string {
	early, late := sec[:len(sec)/2], sec[len(sec)/2:]
	if len(early) < 10 {
		return ""
	}
	was, is := stats.Median(early), stats.Median(late)
	if math.Abs(math.Log(is/was)) <= maxChange+stats.MedianHalfWidth(early)+stats.MedianHalfWidth(late) {
		return ""
	}
	return fmt.Sprintf("the median step took %.4g s in the first half and %.4g s in the second one", was, is)
}

// maxSize is the ratio between the parameters of an optimizer and of a model above which they are not the same; models
// with and without tied embeddings differ by less.
const maxSize = 1.5

// contradiction returns why a program that was timed did not run c, "" if it may have.
func contradiction(t *hook.Timing, c *spec.Config) string {
	if t.Device != "" && (t.Device == "cpu") != c.Accelerator.IsCPU() {
		return fmt.Sprintf("the program trains on %s, the configuration says %s", t.Device, c.Accelerator.Name)
	}
	p := c.Plan.Normal()
	whole := p.TP*p.PP*p.EP == 1 && p.ZeRO == 0 && c.Model.Adapter.Kind == spec.FullTraining // else it has a share of them
	if n, want := t.Parameters, c.Model.Params(); whole && n > 0 && want > 0 && (n > want*maxSize || n < want/maxSize) {
		return fmt.Sprintf("the optimizer has %.4g parameters, model %s has %.4g", n, c.Model.Name, want)
	}
	return ""
}
