package recording

import (
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Version is the version of the format. Fields may be added to a version: readers ignore those
// they do not know.
const Version = 1

// Session is what a controller runs with.
type Session struct {
	Policy   string  `json:"policy,omitempty"`
	StartSec float64 `json:"start_cost_s,omitempty"` // expected time from a start until training begins
	// Even says that jobs have the same number of devices on each of their nodes.
	Even bool `json:"even,omitempty"`
}

// line is a line of a recording: what changed since the line before. A line with a version begins
// a session: it has all nodes and jobs, and those that it lacks are gone.
type line struct {
	Version int       `json:"pacer_recording,omitempty"`
	At      time.Time `json:"at"`
	Session

	// Types and Models are numbered from 0 within a session, in order of appearance.
	Types     []nodeType   `json:"types,omitempty"`
	Models    []spec.Model `json:"models,omitempty"`
	Nodes     []node       `json:"nodes,omitempty"`      // new or changed
	NodesGone []string     `json:"nodes_gone,omitempty"` // that are not in the cluster any more
	Jobs      []job        `json:"jobs,omitempty"`       // new or changed
	Ended     []spec.JobID `json:"ended,omitempty"`
	Cancelled []spec.JobID `json:"cancelled,omitempty"` // of Ended, those that someone cancelled
}

// nodeType is a spec.NodeGroup without Count.
type nodeType struct {
	Devices     int              `json:"devices"`
	Accelerator spec.Accelerator `json:"accelerator"`
	CPUs        int              `json:"cpus,omitempty"`
	HostBytes   float64          `json:"host_bytes,omitempty"`
	Link        spec.Link        `json:"link,omitzero"`
	RackNodes   int              `json:"rack_nodes,omitempty"`
	RackBps     float64          `json:"rack_bps,omitempty"`
}

func typeOf(g *spec.NodeGroup) nodeType {
	return nodeType{g.Devices, g.Accelerator, g.CPUs, g.HostBytes, g.Link, g.Racks.Nodes, g.Racks.Bps}
}

func (t *nodeType) group() spec.NodeGroup {
	return spec.NodeGroup{
		Devices: t.Devices, Accelerator: t.Accelerator, CPUs: t.CPUs, HostBytes: t.HostBytes,
		Link: t.Link, Racks: spec.Racks{Nodes: t.RackNodes, Bps: t.RackBps},
	}
}

// node is the state of a node.
type node struct {
	Name string    `json:"name"`
	Type int       `json:"type"` // number
	Mode live.Mode `json:"mode"`
	// What jobs that pacer does not schedule hold:
	Used          int   `json:"used,omitempty"` // devices
	UsedMilliCPUs int64 `json:"used_milli_cpus,omitempty"`
	UsedBytes     int64 `json:"used_bytes,omitempty"`
}

// job is the state of a job.
type job struct {
	ID      spec.JobID `json:"id"`
	Request *request   `json:"request,omitempty"` // if it is new in the session, or changed
	Phase   live.Phase `json:"phase"`
	Paused  bool       `json:"paused,omitempty"`
	Plan    string     `json:"plan,omitempty"` // of its target, "" = it is to hold nothing
	Slots   live.Slots `json:"slots,omitempty"`
	RunPlan string     `json:"run_plan,omitempty"` // that it was last started with, "" = never
	Held    live.Slots `json:"held,omitempty"`     // the devices it has now
	Started time.Time  `json:"started,omitzero"`   // when its present run began, zero = unknown
	Done    *float64   `json:"done,omitempty"`     // steps completed, absent = unknown
	DoneAt  time.Time  `json:"done_at,omitzero"`   // when that was, zero = now

	Restarts int `json:"restarts,omitempty"`
	Failures int `json:"failures,omitempty"`
}

// request is a job as submitted.
type request struct {
	Submitted   time.Time `json:"submitted,omitzero"` // zero = when it was first seen
	Model       int       `json:"model"`              // number
	SeqLen      int       `json:"seq_len,omitempty"`
	GlobalBatch int       `json:"global_batch,omitempty"`
	Plan        string    `json:"plan,omitempty"`
	Devices     int       `json:"devices"`
	Accelerator string    `json:"accelerator,omitempty"`
	MilliCPUs   int64     `json:"milli_cpus,omitempty"` // for each device
	HostBytes   int64     `json:"host_bytes,omitempty"` // for each device
	Steps       float64   `json:"steps,omitempty"`
	DurationSec float64   `json:"duration_s,omitempty"`
	Epochs      float64   `json:"epochs,omitempty"`
	Tenant      string    `json:"tenant,omitempty"`
	Weight      float64   `json:"weight,omitempty"`
	Guaranteed  bool      `json:"guaranteed,omitempty"`
}

// requestOf returns the request of a job that trains the model of a number.
func requestOf(o *live.Job, model int) *request {
	j := &o.Spec
	r := &request{
		Submitted: o.Submitted.UTC(), Model: model, SeqLen: j.SeqLen, GlobalBatch: j.GlobalBatch, Devices: j.Devices,
		Accelerator: j.Accelerator, MilliCPUs: j.Host.MilliCPUs, HostBytes: j.Host.Bytes, Steps: j.Steps,
		DurationSec: j.Duration.Seconds(), Epochs: j.Epochs, Tenant: j.Tenant, Weight: j.Weight, Guaranteed: j.Guaranteed,
	}
	if j.Plan != (spec.Plan{}) {
		r.Plan = j.Plan.String()
	}
	return r
}

// maxSec is the longest recorded duration, 100 years.
const maxSec = 100 * 365 * 24 * 3600

// job returns the job of a request. Submit is not set.
func (r *request) job(id spec.JobID, models []spec.Model) (spec.Job, error) {
	j := spec.Job{
		ID: id, SeqLen: r.SeqLen, GlobalBatch: r.GlobalBatch, Devices: r.Devices, Accelerator: r.Accelerator,
		Host: spec.Host{MilliCPUs: r.MilliCPUs, Bytes: r.HostBytes}, Steps: r.Steps, Epochs: r.Epochs,
		Tenant: r.Tenant, Weight: r.Weight, Guaranteed: r.Guaranteed,
	}
	if r.Model < 0 || r.Model >= len(models) {
		return j, fmt.Errorf("job %q: model %d is not one of the %d of the session", id, r.Model, len(models))
	}
	if !(r.DurationSec >= 0 && r.DurationSec <= maxSec) {
		return j, fmt.Errorf("job %q: duration_s %g, want 0 to %d", id, r.DurationSec, maxSec)
	}
	j.Model, j.Duration = models[r.Model], seconds(r.DurationSec)
	if r.Plan != "" {
		p, err := spec.ParsePlan(r.Plan)
		if err != nil {
			return j, fmt.Errorf("job %q: %w", id, err)
		}
		j.Plan = p
	}
	return j, nil
}

func seconds(s float64) time.Duration { return time.Duration(s*1e9 + 0.5) }
