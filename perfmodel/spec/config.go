package spec

import "fmt"

// Config is everything that determines the time of a step. It is comparable, and the key of measurements,
// predictions and caches.
type Config struct {
	Model       Model       `json:"model"`
	SeqLen      int         `json:"seq_len,omitempty"` // tokens per sample, 0 = Model.SeqLen
	Plan        Plan        `json:"plan"`
	Accelerator Accelerator `json:"accelerator"`
	Shape       Shape       `json:"shape"`
	Link        Link        `json:"link"`
	Framework   string      `json:"framework,omitempty"` // training stack, such as "Megatron-LM"; "" = not recorded
	// AloneStage, if not 0, means that one rank of this pipeline stage, from 1, runs without the others: its step is its
	// own work, without communication and without waiting. The plan and the shape are those of all ranks.
	AloneStage int `json:"alone_stage,omitempty"`
}

// Alone reports whether c is one rank without the others.
func (c *Config) Alone() bool { return c.AloneStage != 0 }

// RunDevices returns the number of devices that c runs on: those of its plan, or 1 for a rank alone.
func (c *Config) RunDevices() int {
	if c.Alone() {
		return 1
	}
	return c.Plan.Devices()
}

// RankPlan returns the normal plan p of c, for one rank alone as that of its own work: without replicas, pipeline and
// contexts. Its tensor-parallel share and its share of states remain.
func (c *Config) RankPlan(p *Plan) Plan {
	own := *p
	if c.Alone() {
		own.DP, own.PP, own.CP, own.EP, own.VirtualStages, own.Shard, own.Schedule = 1, 1, 1, 1, 1, 0, ScheduleDefault
	}
	return own
}

// CheckAlone returns an error if AloneStage is not a stage of the plan.
func (c *Config) CheckAlone() error {
	if pp := c.Plan.Normal().PP; c.AloneStage < 0 || c.AloneStage > pp {
		return fmt.Errorf("spec: alone_stage=%d is not in [0, pp=%d]", c.AloneStage, pp)
	}
	return nil
}

// AloneText says which rank runs alone, "" if all do.
func (c *Config) AloneText() string {
	if !c.Alone() {
		return ""
	}
	return fmt.Sprintf("one rank of stage %d of %d alone", c.AloneStage, c.Plan.Normal().PP)
}

// FrameworkWorker is the Framework of measurements that Pacer's own worker took. It runs plans exactly as
// written, one micro-batch after another.
const FrameworkWorker = "pacer-torch"

// Key is a (model, accelerator) pair. Each fitted performance model belongs to one key.
type Key struct {
	Model       string `json:"model"`
	Accelerator string `json:"accelerator"`
}

// String writes k as "MODEL on ACCELERATOR".
func (k Key) String() string { return k.Model + " on " + k.Accelerator }

// Key returns the key of c.
func (c Config) Key() Key { return Key{Model: c.Model.Name, Accelerator: c.Accelerator.Name} }

// Seq returns the tokens per sample.
func (c Config) Seq() int {
	if c.SeqLen > 0 {
		return c.SeqLen
	}
	return c.Model.SeqLen
}

// Check returns the first reason why c cannot be run as proposed: a legality rule that its plan breaks, or a
// shape with another number of devices than the plan.
func (c Config) Check() error {
	if n := c.Shape.Total(); n != 0 && n != c.Plan.Devices() {
		return fmt.Errorf("spec: %s: plan %s is for %d devices, shape %s has %d",
			c.Model.Name, c.Plan, c.Plan.Devices(), c.Shape.Devices, n)
	}
	if err := c.CheckAlone(); err != nil {
		return err
	}
	return c.Plan.Check(c.Model)
}
