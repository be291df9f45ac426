package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// simulateFiles are the files that pacer simulate writes; nil = not wanted.
type simulateFiles struct {
	jobs, events, html *console.File
	jobsFormat         report.Format
	eventsFormat       report.Format
	htmlPath           string
	log                io.Writer

	rows   *report.EventWriter // into events
	gantt  *report.Gantt       // of the run under way
	gantts []*report.Gantt     // of those done, for html
}

// createSimulateFiles opens the files of the flags.
func createSimulateFiles(c *cli.Context) (*simulateFiles, error) {
	out := &simulateFiles{
		jobsFormat: report.FormatOf(c.String("jobs-out")), eventsFormat: report.FormatOf(c.String("events-out")),
		htmlPath: c.String("html"), log: c.App.ErrWriter,
	}
	for _, f := range []struct {
		flag string
		file **console.File
	}{{"jobs-out", &out.jobs}, {"events-out", &out.events}, {"html", &out.html}} {
		var err error
		if *f.file, err = console.Create(c.String(f.flag)); err != nil {
			return nil, errors.Join(fmt.Errorf("simulate: --%s: %w", f.flag, err), out.discard())
		}
	}
	if err := command.Distinct(out.jobs, out.events, out.html); err != nil {
		return nil, errors.Join(fmt.Errorf("simulate: %w", err), out.discard())
	}
	return out, nil
}

func (o *simulateFiles) discard() error {
	return errors.Join(o.jobs.Discard(), o.events.Discard(), o.html.Discard())
}

// begin starts the file of events; stop ends the runs if it cannot be written.
func (o *simulateFiles) begin(stop func(error)) (err error) {
	if o.events == nil {
		return nil
	}
	o.rows, err = report.NewEventWriter(o.events.Writer(), o.eventsFormat, stop)
	return err
}

// failed returns why the file of events cannot be written, if it cannot.
func (o *simulateFiles) failed() error {
	if o.rows == nil {
		return nil
	}
	if err := o.rows.Err(); err != nil {
		return fmt.Errorf("writing %s: %w", o.events.Path(), err)
	}
	return nil
}

// observer returns the receiver of the events of a run, nil if no file needs them.
func (o *simulateFiles) observer(c sim.Config) func(sim.Event) {
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

// ran completes the figures of a finished run.
func (o *simulateFiles) ran(ctx context.Context, c sim.Config, r *sim.Result) {
	if o.jobs != nil || o.html != nil {
		r.TimeAlone(ctx, c)
	}
	if o.html != nil {
		o.gantt.End(report.RunEnd(r))
		o.gantts = append(o.gantts, o.gantt)
	}
}

// write completes all files.
func (o *simulateFiles) write(s *experiment.Simulation, results []*sim.Result) error {
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
	if err := o.html.Write(func(w io.Writer) error { return report.WriteHTML(w, simulationPage(s, results, o.gantts)) }); err != nil {
		return err
	}
	fmt.Fprintln(o.log, "report:", o.htmlPath)
	return nil
}
