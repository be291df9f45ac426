package spec

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// JobID identifies a job within one workload.
type JobID string

// Job is a training job as its owner submits it. Its amount of work is one of three: Steps optimizer steps;
// Duration on the requested devices and plan, if Steps is 0; or Epochs of statistical progress. The number of
// steps per epoch then depends on the batch sizes that the job runs at.
type Job struct {
	ID     JobID
	Submit time.Duration // since the trace began

	Model       Model
	SeqLen      int // tokens per sample, 0 = Model.SeqLen
	GlobalBatch int // samples per step, 0 = that of Plan

	// Plan is the requested plan; the scheduler may choose any plan if it is the zero Plan. With parameter
	// servers, its numbers of replicas and servers are initial values that the scheduler may change.
	Plan Plan
	// Devices is the requested number of devices. 0 means that the replicas run on CPUs, which requires
	// parameter servers.
	Devices     int
	Accelerator string // requested type of devices, or of nodes; "" = any
	Host        Host   // request for each device, or for each replica on CPUs, on its node; 0 = none
	ServerHost  Host   // request for each parameter server, on its node

	Steps    float64       // optimizer steps to run, 0 = unknown
	Duration time.Duration // run time on the requested devices with the requested plan, 0 = unknown
	// Epochs is the number of epochs of statistical progress (Qiao et al., Pollux, OSDI 2021, section 3.1): the
	// epochs that training at the initial batch size takes; 0 = unknown.
	Epochs float64

	Tenant     string
	Weight     float64       // the owner's share of the cluster relative to others, 0 = 1
	Deadline   time.Duration // since the trace began, 0 = none
	Guaranteed bool          // entitled to at least the performance of its request; else best effort
}

// Batch returns the samples per step.
func (j Job) Batch() int {
	if j.GlobalBatch > 0 {
		return j.GlobalBatch
	}
	return j.Plan.GlobalBatch()
}

// HasParamServers reports whether j trains with parameter servers.
func (j *Job) HasParamServers() bool { return j.Plan.ParamServers > 0 }

// Accepts reports whether j may run on the accelerator of g.
func (j *Job) Accepts(g *NodeGroup) bool {
	return j.Accelerator == "" || j.Accelerator == g.Accelerator.Name
}

// OnCPUs reports whether the replicas of j run on CPUs only.
func (j *Job) OnCPUs() bool { return j.Devices == 0 }

// ParamServerPlan returns the plan of j with other numbers of replicas and parameter servers, both at least 1.
// The global batch stays the same: each replica gets an equal share, rounded up.
func (j *Job) ParamServerPlan(replicas, servers int) Plan {
	p := j.Plan.Normal()
	p.DP, p.ParamServers = replicas, servers
	p.MicroBatch, p.AccumSteps = (j.Batch()+replicas-1)/replicas, 1
	return p
}

// HostFor returns the CPUs and memory that j needs on a node with the given numbers of replicas and parameter
// servers. For replicas of several devices, replicas is the number of devices.
func (j *Job) HostFor(replicas, servers int) Host {
	return j.Host.Times(replicas).Plus(j.ServerHost.Times(servers))
}

// Validate reports why j is invalid on any cluster.
func (j Job) Validate() error {
	switch {
	case j.ID == "":
		return fmt.Errorf("spec: job without an id")
	case j.Submit < 0:
		return fmt.Errorf("spec: job %s: submit time %v is negative", j.ID, j.Submit)
	case j.Devices < 0 || j.Devices == 0 && !j.HasParamServers():
		return fmt.Errorf("spec: job %s: %d devices requested, want at least 1", j.ID, j.Devices)
	case !(j.Steps >= 0) || math.IsInf(j.Steps, 0):
		return fmt.Errorf("spec: job %s: %g steps, want a finite number of at least 0", j.ID, j.Steps)
	case j.Duration < 0:
		return fmt.Errorf("spec: job %s: duration %v is negative", j.ID, j.Duration)
	case !(j.Epochs >= 0) || math.IsInf(j.Epochs, 0):
		return fmt.Errorf("spec: job %s: %g epochs, want a finite number of at least 0", j.ID, j.Epochs)
	case j.Steps == 0 && j.Duration == 0 && j.Epochs == 0:
		return fmt.Errorf("spec: job %s has neither steps nor a duration", j.ID)
	case !(j.Weight >= 0) || math.IsInf(j.Weight, 0):
		return fmt.Errorf("spec: job %s: weight %g, want a finite number of at least 0", j.ID, j.Weight)
	case j.GlobalBatch < 0 || j.SeqLen < 0:
		return fmt.Errorf("spec: job %s: global batch %d, %d tokens per sample, want at least 0", j.ID, j.GlobalBatch, j.SeqLen)
	case j.Deadline < 0:
		return fmt.Errorf("spec: job %s: deadline %v is negative", j.ID, j.Deadline)
	}
	if err := j.Host.check("device"); err != nil {
		return fmt.Errorf("spec: job %s: %w", j.ID, err)
	}
	if err := j.checkServers(); err != nil {
		return fmt.Errorf("spec: job %s: %w", j.ID, err)
	}
	return nil
}

// checkServers reports a request that conflicts with the plan's use of parameter servers.
func (j *Job) checkServers() error {
	none := Host{}
	switch {
	case !j.HasParamServers() && j.ServerHost != none:
		return fmt.Errorf("%v requested for each parameter server, but plan %s has none", j.ServerHost, j.Plan)
	case !j.HasParamServers():
		return nil
	case j.ServerHost == none:
		return fmt.Errorf("plan %s: parameter servers run on CPUs, but the job requests none for them", j.Plan)
	case j.OnCPUs() && j.Host == none:
		return fmt.Errorf("plan %s: replicas run on CPUs, but the job requests none for them", j.Plan)
	}
	plan := j.Plan.Normal()
	if why := plan.badServers(); why != "" {
		return errors.New(why)
	}
	return j.ServerHost.check("parameter server")
}
