package profiler

import (
	"cmp"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Campaign describes what to measure and for how long. ReadCampaign reads one from YAML;
// docs/guides/campaigns.md describes the file.
type Campaign struct {
	Name        string
	Description string
	Models      []spec.Model
	Space       Space
	Choose      Order  // "" = Adaptive
	Family      string // performance model that guides Adaptive and Until, "" = "hybrid"
	Until       Until
	Budget      Budget
	Point       PointOptions
	Runner      RunnerSpec
}

// Order is the way the next point is chosen.
type Order string

const (
	Adaptive Order = "adaptive" // most expected information first
	Random   Order = "random"   // shuffled by the seed
	Grid     Order = "grid"     // in canonical order
)

// Space is the set of configurations that may be measured: the product of all lists, plus Plans. An empty list
// stands for the default given below.
type Space struct {
	// Accelerator is the catalog name the machine must have, AnyGPU = any but a CPU, "" = any.
	Accelerator string
	Shapes      []spec.Shape // devices per node: 1, 2, "8+8"; default 1
	SeqLens     []int        // tokens per sample; default the model's own
	MicroBatch  []int        // default 1
	AccumSteps  []int        // default 1
	TP, PP      []int        // default 1; DP is the rest of the devices
	ZeRO        []int        // default 0
	SP          []bool       // default false
	Recompute   []spec.Recompute
	Offload     []spec.Offload
	Precision   []spec.Precision // default spec.Accelerator.DefaultPrecision, FP32 on CPUs
	Plans       []spec.Plan      // exact plans in addition to the product, on Shapes of their size
	// Alone has plans for more devices than the machine measured one rank at a time, without the others: one rank of the
	// first, the second and the last pipeline stage. See spec.Config.AloneStage.
	Alone bool
	// Measured replaces all of the above by the configurations of the runner's table; for the
	// replay runner.
	Measured bool
}

// AnyGPU is the Space.Accelerator of a campaign for any accelerator but CPUs.
const AnyGPU = "gpu"

// Until is a condition that ends a campaign early.
type Until struct {
	// Interval is the wanted half width of the family's 90 % intervals, as a fraction of the
	// prediction. The campaign ends when nine in ten points of every model's space, measured or
	// not, have an interval this narrow. 0 = never.
	Interval float64
}

// Budget limits a run; a zero field means no limit.
type Budget struct {
	Points      int           // points measured, with any outcome
	DeviceHours float64       // devices x time they are held, launch included
	Wall        time.Duration // of this run, earlier sessions included
}

// PointOptions configure the measurement of one point.
type PointOptions struct {
	Timeout  time.Duration // after which the point is killed, 0 = 5 minutes
	MinSteps int           // smallest number of timed steps, 0 = 5, or MaxSteps if fewer
	MaxSteps int           // largest number of timed steps, 0 = 100, or MinSteps if more
	MaxTime  time.Duration // no timed step begins after this, even before MinSteps; 0 = 30 s, or half of Timeout
	// MinTime is the least duration of warm-up and of timed steps, beyond MaxSteps but within
	// MaxTime: clocks rise with load, and energy is read a few times a second. 0 = 1 s on
	// accelerators, or half of MaxTime if that is less, and no minimum on CPUs.
	MinTime time.Duration
	// Interval is the wanted precision of the median step time: the half width of its 95 % interval
	// as a fraction of it, 0 = 0.02.
	Interval float64
	Compile  bool // torch.compile
	Threads  int  // CPU threads per device, 0 = 1 on CPUs, the framework's own elsewhere
}

// Defaults returns p with its zero fields replaced, except Threads and MinTime.
func (p PointOptions) Defaults() PointOptions {
	p.Timeout = cmp.Or(p.Timeout, 5*time.Minute)
	p.MinSteps = cmp.Or(p.MinSteps, min(5, cmp.Or(p.MaxSteps, 5)))
	p.MaxSteps = cmp.Or(p.MaxSteps, max(100, p.MinSteps))
	p.MaxTime = cmp.Or(p.MaxTime, min(30*time.Second, p.Timeout/2))
	p.Interval = cmp.Or(p.Interval, 0.02)
	return p
}

// RunnerSpec names the runner of a campaign and its options.
type RunnerSpec struct {
	Name   string  // "torchrun" ("" too), "command", "replay" or "synthetic"
	Source string  // replay: source of the stored rows
	Noise  float64 // replay, synthetic: standard deviation of log step time between steps
	Delay  time.Duration
	// Command is the training command of the runner "command".
	Command CommandSpec
}

// Point is one configuration that may be measured.
type Point struct {
	Config spec.Config
}

// Rejected is a configuration that will not be measured.
type Rejected struct {
	Config spec.Config
	Why    string
	Group  Group // kind of reason
	// UnusedValue is the value of the space that causes the rejection, such as "tp=8", if no point has this
	// value. It is empty if only this combination is rejected, which happens in every product of lists.
	UnusedValue string
}

// Group is the kind of reason for a rejection.
type Group string

const (
	ForDevices   Group = "devices"   // too few devices, or a split that does not divide them
	ForModel     Group = "model"     // the plan cannot train the model
	ForStack     Group = "stack"     // the device or the training stack lacks a feature
	ForDuplicate Group = "duplicate" // the same plan under another name
	ForMemory    Group = "memory"    // more memory than device or host has
	ForOutcome   Group = "outcome"   // a smaller point ran out of memory or time
)
