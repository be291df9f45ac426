package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// eventRow is something that happened in a run.
type eventRow struct {
	policy string
	sim.Event
}

// eventColumns are those of a file of events; new ones go to the end.
var eventColumns = []column[eventRow]{
	{"policy", "", "scheduling policy with its options", textKind, func(e *eventRow) cell { return textCell(e.policy) }},
	{"at_s", "s", "when it happened; rows are in order", timeKind, func(e *eventRow) cell { return timeCell(e.At, true) }},
	{"event", "", "submitted, held, rejected, started, moved, stopped, completed, failed or shared (goes on beside another job, or alone again); down or up of a node", textKind, func(e *eventRow) cell { return textCell(e.Kind.String()) }},
	{"job_id", "", "of the workload; null = of a node", textKind, func(e *eventRow) cell { return textCell(e.jobID()) }},
	{"devices", "", "started, moved, shared: that it holds now; stopped, completed, failed: that it held", wholeKind, func(e *eventRow) cell {
		return cell{n: int64(e.Grant.Devices()), null: e.Grant == nil}
	}},
	{"nodes", "", "on how many nodes those are", wholeKind, func(e *eventRow) cell {
		if e.Grant == nil {
			return cell{null: true}
		}
		return wholeCell(len(e.Grant.Slots))
	}},
	{"slots", "", "which: node:devices, separated by spaces; nodes count from 0 in the order of the cluster; with parameter servers node:2+1s, replicas on CPUs node:3w+1s", textKind,
		func(e *eventRow) cell { return textCell(slotsText(e.Grant)) }},
	{"plan", "", "execution plan on them; null = none is known", textKind, func(e *eventRow) cell { return textCell(planText(e.Grant)) }},
	{"why", "", "the reason given; null = none", textKind, func(e *eventRow) cell { return textCell(e.Why) }},
	{"node", "", "that went down or up, or whose failure the job failed by; null = of neither", wholeKind, func(e *eventRow) cell {
		return cell{n: int64(e.Node), null: e.Kind != sim.Failed && e.Kind != sim.NodeDown && e.Kind != sim.NodeUp}
	}},
	{"with", "", "job that shares the devices; null = none", textKind, func(e *eventRow) cell { return textCell(e.with()) }},
}

func (e *eventRow) with() string {
	if e.Grant == nil {
		return ""
	}
	return string(e.Grant.With)
}

func (e *eventRow) jobID() string {
	if e.Job == nil {
		return ""
	}
	return string(e.Job.ID)
}

// slotsText writes "0:2 3:1", with what runs on CPUs "0:2+1s 4:3w+1s 5:2s": replicas
// without devices and parameter servers.
func slotsText(g *scheduler.Grant) string {
	if g == nil {
		return ""
	}
	all := make([]string, len(g.Slots))
	for i, s := range g.Slots {
		var parts []string
		add := func(n int, kind string) {
			if n > 0 {
				parts = append(parts, strconv.Itoa(n)+kind)
			}
		}
		add(s.Devices, "")
		add(s.Workers, "w")
		add(s.Servers, "s")
		all[i] = strconv.Itoa(s.Node) + ":" + strings.Join(parts, "+")
	}
	return strings.Join(all, " ")
}

func planText(g *scheduler.Grant) string {
	if g == nil {
		return ""
	}
	return g.Plan.String()
}

// EventWriter writes the events of runs, one after the other, as they happen.
type EventWriter struct {
	out    rowWriter[eventRow]
	failed func(error)
	err    error
	row    eventRow
}

// NewEventWriter begins a file of events. failed, if not nil, is told once of an
// error in writing, after which nothing more is written.
func NewEventWriter(w io.Writer, f Format, failed func(error)) (*EventWriter, error) {
	out, err := newRowWriter(w, f, "pacer.events", eventColumns)
	return &EventWriter{out: out, failed: failed}, err
}

// Observer returns what writes the events of a policy's run, for
// sim.Config.Observe.
func (w *EventWriter) Observer(policy string) func(sim.Event) {
	return func(e sim.Event) {
		if w.err != nil {
			return
		}
		w.row = eventRow{policy, e}
		if err := w.out.write(&w.row); err != nil {
			w.err = fmt.Errorf("report: event at %s s: %w", Seconds(e.At), err)
			if w.failed != nil {
				w.failed(w.err)
			}
		}
	}
}

// Err returns why nothing more is written, nil as long as all is well.
func (w *EventWriter) Err() error { return w.err }

// Close completes the file, or returns what went wrong before.
func (w *EventWriter) Close() error {
	if w.err != nil {
		return w.err
	}
	return w.out.close()
}
