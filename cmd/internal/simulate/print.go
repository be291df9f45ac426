package simulate

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// printResults writes the summaries to standard output, and warnings about the runs to
// standard error.
func printResults(c *cli.Context, s *experiment.Simulation, results []*sim.Result, explain *report.Explanations) error {
	printWarnings(c.App.ErrWriter, results)
	w, runs := c.App.Writer, report.SummarizeAll(results, s.Score)
	switch output := command.Global(c, "output"); {
	case output == "json" && explain != nil:
		return report.WriteExplained(w, runs, explain)
	case output == "json":
		return report.WriteJSON(w, runs)
	case output == "csv" && explain != nil:
		return explain.WriteCSV(w)
	case output == "csv":
		return report.WriteCSV(w, runs)
	}
	if err := report.WriteTable(w, runs); err != nil || explain == nil {
		return err
	}
	return explain.WriteTable(w)
}

// printWarnings prints rejected and unfinished jobs, and each warning once.
func printWarnings(w io.Writer, results []*sim.Result) {
	said := map[string]bool{}
	for _, r := range results {
		for _, line := range reasons(r, func(j *sim.JobRecord) string { return j.Rejected }) {
			fmt.Fprintf(w, "rejected: %s: %s\n", r.Policy, line)
		}
		for _, line := range reasons(r, scoredUnfinished) {
			fmt.Fprintf(w, "unfinished: %s: %s\n", r.Policy, line)
		}
		for _, warning := range r.Warnings {
			if !said[warning] && len(said) < experiment.MaxReported {
				fmt.Fprintf(w, "warning: %s: %s\n", r.Policy, warning)
			}
			said[warning] = true
		}
	}
}

// scoredUnfinished returns why a scored job did not finish, "" for all others.
func scoredUnfinished(j *sim.JobRecord) string {
	if !j.Scored {
		return ""
	}
	return j.Unfinished
}

// reasons counts jobs by reason and names the first of each, for at most experiment.MaxReported
// reasons. A job with reason "" is left out.
func reasons(r *sim.Result, of func(*sim.JobRecord) string) []string {
	first, count := map[string]spec.JobID{}, map[string]int{}
	var order []string
	for i := range r.Jobs {
		reason := of(&r.Jobs[i])
		if reason == "" {
			continue
		}
		if count[reason]++; count[reason] == 1 {
			first[reason], order = r.Jobs[i].Job.ID, append(order, reason)
		}
	}
	var out []string
	for i, reason := range order {
		if i == experiment.MaxReported {
			return append(out, fmt.Sprintf("for %d more reasons", len(order)-i))
		}
		out = append(out, fmt.Sprintf("%s, job %s first: %s", spec.Count(count[reason], "job"), first[reason], reason))
	}
	return out
}

// page is the HTML report of a simulation.
func (o *outputs) page(s *experiment.Simulation, results []*sim.Result) report.HTMLInput {
	return report.HTMLInput{
		Title:   fmt.Sprintf("%d jobs on %d devices", len(s.Jobs), s.Cluster.Devices()),
		Results: results, Gantts: o.gantts, Score: s.Score,
		Facts: append(s.Facts(), report.Fact{Name: "Pacer", Value: o.version}),
	}
}

// writeReplay prints how a run compares with its record.
func writeReplay(w io.Writer, r replay.Report) {
	fmt.Fprintf(w, "replay: %d of %d recorded rounds decided, %d of them nothing the policy could decide, %d better than it would have\n",
		r.Rounds, r.Recorded, r.Impossible, r.Better)
	fmt.Fprintf(w, "replay: decided worse by %.4g in all, %.4g at most, by more than %g in %d rounds\n", r.Gap, r.WidestGap, replay.WideGap, r.WideGaps)
	fmt.Fprintf(w, "replay: of %d times a job held devices in a round %d trained as recorded, %d were as far\n", r.JobRounds, r.Batches, r.Progress)
	if len(r.Differences) > 0 {
		fmt.Fprintf(w, "replay: first %s\n", strings.Join(r.Differences, "\nreplay: first "))
	}
}

// outputs are the files that pacer simulate writes; nil = not wanted.
type outputs struct {
	jobs, events, html *console.File
	jobsFormat         report.Format
	eventsFormat       report.Format
	htmlPath, version  string // version is in html
	log                io.Writer

	rows   *report.EventWriter // into events
	gantt  *report.Gantt       // of the run under way
	gantts []*report.Gantt     // of those done, for html
}

// createFiles opens the files of the flags.
func createFiles(c *cli.Context) (*outputs, error) {
	files, err := command.OpenFiles(c, "jobs-out", "events-out", "html")
	return &outputs{
		jobs: files["jobs-out"], events: files["events-out"], html: files["html"], htmlPath: c.String("html"), version: c.App.Version, log: c.App.ErrWriter,
		jobsFormat: report.FormatOf(c.String("jobs-out")), eventsFormat: report.FormatOf(c.String("events-out")),
	}, err
}

func (o *outputs) discard() error {
	return errors.Join(o.jobs.Discard(), o.events.Discard(), o.html.Discard())
}

// begin starts the file of events; stop ends the runs if it cannot be written.
func (o *outputs) begin(stop func(error)) (err error) {
	if o.events == nil {
		return nil
	}
	o.rows, err = report.NewEventWriter(o.events.Writer(), o.eventsFormat, stop)
	return err
}

// failed returns why the file of events cannot be written, if it cannot.
func (o *outputs) failed() error {
	if o.rows == nil {
		return nil
	}
	if err := o.rows.Err(); err != nil {
		return fmt.Errorf("writing %s: %w", o.events.Path(), err)
	}
	return nil
}

// observer returns the receiver of the events of a run, nil if no file needs them.
func (o *outputs) observer(c sim.Config) func(sim.Event) {
	var all []func(sim.Event)
	if o.rows != nil {
		all = append(all, o.rows.Observer(c.PolicyName))
	}
	if o.html != nil {
		o.gantt = report.NewGantt(c.Cluster)
		all = append(all, o.gantt.Observe)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(e sim.Event) {
		for _, f := range all {
			f(e)
		}
	}
}

// ran completes the chart of a run; a recorded one has none.
func (o *outputs) ran(r *sim.Result) {
	switch {
	case o.html == nil:
	case r.Failed != "" || o.gantt == nil:
		o.gantts = append(o.gantts, nil)
	default:
		o.gantt.End(report.RunEnd(r))
		o.gantts = append(o.gantts, o.gantt)
	}
	o.gantt = nil
}

// write completes all files.
func (o *outputs) write(s *experiment.Simulation, results []*sim.Result) error {
	if o.events != nil {
		if err := o.events.Finish(o.rows.Close()); err != nil {
			return err
		}
	}
	if o.jobs != nil {
		if err := o.jobs.Write(func(w io.Writer) error { return report.WriteJobs(w, o.jobsFormat, results, s.Score) }); err != nil {
			return err
		}
	}
	if o.html == nil {
		return nil
	}
	if err := o.html.Write(func(w io.Writer) error { return report.WriteHTML(w, o.page(s, results)) }); err != nil {
		return err
	}
	fmt.Fprintln(o.log, "report:", o.htmlPath)
	return nil
}
