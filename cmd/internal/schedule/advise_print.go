package schedule

import (
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/child"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// adviceOutput is the JSON of pacer advise.
type adviceOutput struct {
	Jobs    []advice `json:"jobs"`
	Command []string `json:"command"`         // that runs
	Stdin   string   `json:"stdin,omitempty"` // its changed standard input
	Error   string   `json:"error,omitempty"` // why there is no advice
}

// printAdvice prints to standard error, or to standard output in a dry run.
func printAdvice(c *cli.Context, a *answered) error {
	w, dry := c.App.ErrWriter, c.Bool("dry-run")
	if dry {
		w = c.App.Writer
	}
	format := command.Global(c, "output")
	out := adviceOutput{Jobs: query.OrEmpty(a.jobs), Command: a.submit.args}
	set := false
	for i := range a.jobs {
		set = set || a.jobs[i].Set
	}
	if set {
		out.Stdin = string(a.submit.stdin)
	}
	if a.err != nil {
		out.Error = command.Message(a.err)
	}
	table := func(w io.Writer) error {
		for i := range a.jobs {
			a.jobs[i].print(w)
		}
		if a.err != nil && !dry {
			for _, err := range eachError(a.err) {
				fmt.Fprintf(w, "pacer: %s; %s\n", command.Message(err), map[bool]string{true: "the job is not changed", false: "the command runs unchanged"}[set])
			}
		}
		if set || dry {
			text, err := child.Quote(out.Command)
			if err != nil {
				return err
			}
			fmt.Fprintln(w, "pacer: command:", text)
		}
		if dry && out.Stdin != "" {
			fmt.Fprint(w, "\n", out.Stdin)
		}
		return nil
	}
	return console.Result{JSON: out, CSV: adviceCSV(a.jobs), Table: table}.Write(w, format)
}

// eachError returns the errors that were joined.
func eachError(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

// print writes what is known of a job.
func (a *advice) print(w io.Writer) {
	if a.Model == "" {
		return
	}
	plan := "no plan, so the best one"
	if a.Plan != "" {
		plan = a.Plan
	}
	fmt.Fprintf(w, "pacer: %s: %s, batch %d, on %d x %s (%s), %s; by %s\n", a.Job, a.Model, a.GlobalBatch, a.Devices, a.Accelerator, a.Shape, plan, a.By)
	if s := a.Submitted; s == nil && a.Best == nil {
		return // the error says why
	} else if s == nil {
		fmt.Fprintln(w, "pacer: as submitted: no legal plan")
	} else if s.Fits {
		fmt.Fprintf(w, "pacer: as submitted: %s, fits\n", stepText(s))
	} else {
		fmt.Fprintf(w, "pacer: as submitted: %s: %s\n", query.Misfit(s.Verdict), s.Why)
	}
	if a.Best == nil {
		return
	}
	gain := ""
	if a.Gain != nil && *a.Gain < worthwhile {
		gain = ", no faster than submitted"
	} else if a.Gain != nil {
		gain = fmt.Sprintf(", %.2f times as fast", 1+*a.Gain)
	}
	fmt.Fprintf(w, "pacer: best: %s%s\n", sizeText(a.Best), gain)
	fmt.Fprintf(w, "pacer: least: %s, %.0f %% of the highest speed per device\n", sizeText(a.Least), 100*a.leastShare)
}

func sizeText(r *query.PlanRow) string {
	return fmt.Sprintf("%s (%s), %s: %s", spec.Count(r.Devices, "device"), r.Shape, r.Plan, stepText(r))
}

func stepText(r *query.PlanRow) string {
	text := "a step of " + number.Significant(r.StepTimeSec, 3) + " s"
	if r.StepTimeHi > r.StepTimeLo {
		text += fmt.Sprintf(" (90 %%: %s to %s s)", number.Significant(r.StepTimeLo, 3), number.Significant(r.StepTimeHi, 3))
	}
	return text
}

func adviceCSV(jobs []advice) [][]string {
	out := [][]string{{"job", "size", "devices", "shape", "plan", "step_time_s", "step_time_lo_s", "step_time_hi_s", "fits"}}
	for i := range jobs {
		j := &jobs[i]
		for _, size := range []struct {
			name string
			row  *query.PlanRow
		}{{"submitted", j.Submitted}, {"best", j.Best}, {"least", j.Least}} {
			if r := size.row; r != nil {
				out = append(out, []string{j.Job, size.name, fmt.Sprint(r.Devices), r.Shape, r.Plan, number.Float(r.StepTimeSec), number.Float(r.StepTimeLo), number.Float(r.StepTimeHi), fmt.Sprint(r.Fits)})
			}
		}
	}
	return out
}
