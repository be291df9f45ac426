package perfmodel

import (
	"fmt"
	"time"
)

// Drifter is an optional interface of Fitteds that find rows which stop agreeing with earlier ones.
type Drifter interface {
	// Drifts returns the changes of a site, ordered by stack, accelerator and date.
	Drifts() []Drift
}

// Drift is a change of one part of the step times of a site. Rows from before it count less.
type Drift struct {
	Stack       string    `json:"stack" doc:"Training stack of the rows."`
	Accelerator string    `json:"accelerator" doc:"Type of device of the rows."`
	Since       time.Time `json:"since" doc:"Time of the first measurement after the change."`
	Part        string    `json:"part" doc:"What changed: compute, network or launch."`
	Factor      float64   `json:"factor" doc:"Time of the part after the change over that before."`
	Older       int       `json:"older" doc:"Measurements before the change, which count less."`
	Newer       int       `json:"newer" doc:"Measurements since the change."`
}

// String describes the change.
func (d Drift) String() string {
	change := fmt.Sprintf("%.0f %% longer", 100*(d.Factor-1))
	if d.Factor < 1 {
		change = fmt.Sprintf("%.0f %% shorter", 100*(1-d.Factor))
	}
	stack := d.Stack
	if stack == "" {
		stack = "a stack that is not stated"
	}
	return fmt.Sprintf("drift: since %s the %s time of %s on %s is %s (%d rows); %d older rows count less",
		d.Since.UTC().Format(time.DateOnly), d.Part, stack, d.Accelerator, change, d.Newer, d.Older)
}
