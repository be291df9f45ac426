package spec

import "fmt"

// Config is everything that decides how fast a step runs. It is measured,
// predicted, cached and looked up. Comparable.
type Config struct {
	Model       Model       `json:"model"`
	SeqLen      int         `json:"seq_len,omitempty"` // tokens per sample, 0 = Model.SeqLen
	Plan        Plan        `json:"plan"`
	Accelerator Accelerator `json:"accelerator"`
	Shape       Shape       `json:"shape"`
	Link        Link        `json:"link"`
	Framework   string      `json:"framework,omitempty"` // training stack, such as "Megatron-LM"; "" = not recorded
}

// FrameworkWorker is the Framework of what Pacer's own worker ran: its plans
// were run as written, micro-batch by micro-batch.
const FrameworkWorker = "pacer-torch"

// Key names a (model, accelerator) pair: what one fitted performance model is
// about.
type Key struct {
	Model       string `json:"model"`
	Accelerator string `json:"accelerator"`
}

// String writes k as "MODEL on ACCELERATOR".
func (k Key) String() string { return k.Model + " on " + k.Accelerator }

// Key returns the pair c belongs to.
func (c Config) Key() Key { return Key{Model: c.Model.Name, Accelerator: c.Accelerator.Name} }

// Seq returns the tokens per sample.
func (c Config) Seq() int {
	if c.SeqLen > 0 {
		return c.SeqLen
	}
	return c.Model.SeqLen
}

// Check returns the first reason why c cannot be run as proposed: a legality
// rule of its plan, or devices that do not agree with its shape.
func (c Config) Check() error {
	if n := c.Shape.Total(); n != 0 && n != c.Plan.Devices() {
		return fmt.Errorf("spec: %s: plan %s is for %d devices, shape %s has %d",
			c.Model.Name, c.Plan, c.Plan.Devices(), c.Shape.Devices, n)
	}
	return c.Plan.Check(c.Model)
}
