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
	return c.Plan.Check(c.Model)
}
