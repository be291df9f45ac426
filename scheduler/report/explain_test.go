package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func explained() *Explanations {
	x := &Explanations{Jobs: []spec.JobID{"b", "a"}}
	a, b := &spec.Job{ID: "a"}, &spec.Job{ID: "b"}
	g := &scheduler.Grant{Job: "a", Plan: spec.Plan{DP: 3}.Normal(), Slots: []scheduler.Slot{{Node: 0, Devices: 2}, {Node: 4, Devices: 1}}}
	tell := x.Explain("rubick").OnEvent
	tell(sim.Event{At: time.Second / 2, Kind: sim.Submitted, Job: a})
	tell(sim.Event{At: time.Second, Kind: sim.Started, Job: a, Grant: g, Why: `slope 3 > 2: "b" & c`})
	tell(sim.Event{At: time.Second, Kind: sim.Waits, Job: b, Why: "a\nb"})
	x.Explain("fifo").OnEvent(sim.Event{At: time.Minute, Kind: sim.Failed, Job: a, Grant: g, Node: 4})
	return x
}

// TestExplanationsJSON checks that fields are the columns of a file of events, and
// that reasons are escaped.
func TestExplanationsJSON(t *testing.T) {
	var b strings.Builder
	if err := WriteExplained(&b, []Summary{}, explained()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Runs         []any
		Explanations []map[string]any
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if len(got.Explanations) != 4 {
		t.Fatalf("%d events, want 4:\n%s", len(got.Explanations), b.String())
	}
	for _, e := range got.Explanations {
		for _, c := range eventColumns {
			if _, ok := e[c.name]; !ok || len(e) != len(eventColumns) {
				t.Errorf("%v has not exactly the columns of a file of events: %s", e, c.name)
			}
		}
	}
	started, waits, failed := got.Explanations[1], got.Explanations[2], got.Explanations[3]
	if started["at_s"] != 1.0 || started["why"] != `slope 3 > 2: "b" & c` || started["devices"] != 3.0 || started["slots"] != "0:2 4:1" || started["node"] != nil {
		t.Errorf("started: %v", started)
	}
	if waits["why"] != "a\nb" || waits["devices"] != nil || failed["node"] != 4.0 || failed["policy"] != "fifo" {
		t.Errorf("waits: %v, failed: %v", waits, failed)
	}
}

// TestSlotsText checks that exactly the parts of a slot are written.
func TestSlotsText(t *testing.T) {
	g := &scheduler.Grant{Slots: []scheduler.Slot{{Node: 0, Devices: 2}, {Node: 2, Devices: 1, Servers: 3}, {Node: 4, Servers: 1}, {Node: 5, Workers: 4, Servers: 2}}}
	if got, want := slotsText(g), "0:2 2:1+3s 4:1s 5:4w+2s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestExplanationsTable(t *testing.T) {
	var b strings.Builder
	if err := explained().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	order := []string{"rubick, job b", "waits", "rubick, job a", "submitted", "0:2 4:1", `slope 3 > 2: "b" & c`, "fifo, job b", "fifo, job a", "failed"}
	rest := b.String()
	for _, want := range order {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is not where it belongs in\n%s", want, b.String())
		}
		rest = after
	}
	for name, err := range map[string]error{
		"table": explained().WriteTable(fullDisk{}), "csv": explained().WriteCSV(fullDisk{}), "json": WriteExplained(fullDisk{}, nil, explained()),
	} {
		if err == nil {
			t.Errorf("%s on a full disk: no error", name)
		}
	}
}
