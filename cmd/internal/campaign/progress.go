package campaign

import (
	"fmt"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// Progress is the state of a running campaign, as pacer profile run posts it to the server that has its store.
type Progress struct {
	Name        string    `json:"name" minLength:"1" maxLength:"256"`
	Label       string    `json:"label" maxLength:"256" doc:"Of the run."`
	Machine     string    `json:"machine" maxLength:"256" doc:"Devices that measure."`
	Done        int       `json:"done" minimum:"0" doc:"Points measured."`
	Wanted      int       `json:"wanted" minimum:"0" doc:"Most points of the run."`
	OutOfMemory int       `json:"out_of_memory" minimum:"0" doc:"Of the points measured."`
	Failed      int       `json:"failed" minimum:"0" doc:"Of the points measured: crashed, or took too long."`
	Doubted     int       `json:"in_doubt" minimum:"0" doc:"Points of this session that are neither fitted nor scored."`
	DeviceHours float64   `json:"device_hours" minimum:"0"`
	LeftSec     float64   `json:"left_s" minimum:"0" doc:"Expected time to the end; 0 = unknown."`
	Next        string    `json:"next" maxLength:"1024" doc:"Point that is being measured."`
	Last        string    `json:"last" maxLength:"1024" doc:"Point measured last, and its result."`
	Stopped     string    `json:"stopped" maxLength:"256" doc:"Why the run ended; empty while it goes on."`
	Updated     time.Time `json:"updated" doc:"When the server received it."`
}

// Reporter makes the Progress of a run from its events.
type Reporter struct {
	camp    profiler.Campaign
	machine string
	now     Progress
}

// NewReporter returns a Reporter of a session.
func NewReporter(s *Session) *Reporter {
	return &Reporter{camp: s.Campaign, machine: cut(fmt.Sprintf("%d x %s", len(s.Setup.Machine.Devices), s.Setup.Machine.Accelerator.Name), 256)}
}

// Event returns the Progress after an event.
func (r *Reporter) Event(e profiler.Event) Progress {
	if e.Last != nil {
		r.now.Last = cut(PointResult(*e.Last), 1024)
		if e.Last.Doubt != "" {
			r.now.Doubted++
		}
	}
	r.now.Next = ""
	if e.Next != nil {
		r.now.Next = cut(PointName(e.Next.Point.Config), 1024)
	}
	return r.State(e.State)
}

// State returns the Progress in a state.
func (r *Reporter) State(s profiler.State) Progress {
	p := &r.now
	p.Name, p.Label, p.Machine = r.camp.Name, s.Label, r.machine
	p.Done, p.Wanted, p.DeviceHours, p.LeftSec, p.Stopped = s.Done, pointsWanted(r.camp, s), s.DeviceSec/3600, s.ETASec, cut(s.Stopped, 256)
	p.OutOfMemory, p.Failed = s.ByOutcome[spec.OOM], s.ByOutcome[spec.Failed]+s.ByOutcome[spec.Timeout]
	if s.Stopped != "" {
		p.LeftSec = 0
	}
	return *p
}

// cut returns at most n bytes of s.
func cut(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }
