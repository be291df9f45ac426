package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// eventRow is an event of a policy's run.
type eventRow struct {
	policy string
	sim.Event
}

// eventColumns are the columns of a file of events. New ones go to the end.
var eventColumns = []column[eventRow]{
	{"policy", "", "scheduling policy with its options", textKind, func(e *eventRow) cell { return textCell(e.policy) }},
	{"at_s", "s", "when it happened; rows are in order", timeKind, func(e *eventRow) cell { return timeCell(e.At, true) }},
	{"event", "", "submitted, held, rejected, started, moved, stopped, completed, failed, evicted (by a node that went down with notice) or shared (a running job starts or ends sharing devices with another); down or up for a node", textKind, func(e *eventRow) cell { return textCell(e.Kind.String()) }},
	{"job_id", "", "id of the job in the workload; null = the event is about a node", textKind, func(e *eventRow) cell { return textCell(e.jobID()) }},
	{"devices", "", "devices the job holds after the event (started, moved, shared) or held before it (stopped, completed, failed, evicted)", wholeKind, func(e *eventRow) cell {
		return cell{n: int64(e.Grant.Devices()), null: e.Grant == nil}
	}},
	{"nodes", "", "number of nodes of those devices", wholeKind, func(e *eventRow) cell {
		if e.Grant == nil {
			return cell{null: true}
		}
		return wholeCell(len(e.Grant.Slots))
	}},
	{"slots", "", "those devices as node:devices, separated by spaces; nodes count from 0 in the order of the cluster; 4:2+1s = 2 devices and a parameter server on node 4, 4:3w+1s = 3 replicas on CPUs and a parameter server", textKind,
		func(e *eventRow) cell { return textCell(slotsText(e.Grant)) }},
	{"plan", "", "execution plan on those devices; null = not known", textKind, func(e *eventRow) cell { return textCell(planText(e.Grant)) }},
	{"why", "", "reason the policy or the simulator gives; null = none", textKind, func(e *eventRow) cell { return textCell(e.Why) }},
	{"node", "", "node that went down or up, or that made the job fail or evicted it; null = neither", wholeKind, func(e *eventRow) cell {
		return cell{n: int64(e.Node), null: e.Node < 0 || e.Kind != sim.Failed && e.Kind != sim.Evicted && e.Kind != sim.NodeDown && e.Kind != sim.NodeUp}
	}},
	{"with", "", "job that shares those devices; null = none", textKind, func(e *eventRow) cell { return textCell(e.with()) }},
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

// slotsText writes node:devices, such as "0:2 3:1". Parameter servers are "+1s",
// replicas on CPUs "3w": "0:2+1s 4:3w+1s 5:2s".
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

// NewEventWriter begins a file of events. The first error in writing ends the file;
// failed, if not nil, is called with it once.
func NewEventWriter(w io.Writer, f Format, failed func(error)) (*EventWriter, error) {
	out, err := newRowWriter(w, f, "pacer.events", eventColumns)
	return &EventWriter{out: out, failed: failed}, err
}

// Observer returns a function for sim.Config.Observe that writes the events of a
// policy's run.
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

// Err returns the first error in writing, nil if there was none.
func (w *EventWriter) Err() error { return w.err }

// Close completes the file, or returns the first error in writing.
func (w *EventWriter) Close() error {
	if w.err != nil {
		return w.err
	}
	return w.out.close()
}
