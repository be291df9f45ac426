package remote

import (
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Problem is an error response of the API (RFC 9457, problem details for HTTP APIs).
type Problem struct {
	Type   string   `json:"type,omitempty"`
	Title  string   `json:"title,omitempty"`
	Status int      `json:"status,omitempty"`
	Detail string   `json:"detail,omitempty"`
	Errors []Detail `json:"errors,omitempty"`
	// Planner has the details of TypeInfeasible.
	Planner *Infeasible `json:"planner,omitempty"`
}

// Infeasible is a planner.InfeasibleError in JSON.
type Infeasible struct {
	Request string  `json:"question"`
	Why     string  `json:"why"`
	Nearest *Choice `json:"nearest,omitempty" doc:"The nearest plan."`
	Remedy  *Remedy `json:"remedy,omitempty" doc:"The smallest change found that would help."`
}

// Remedy is a planner.Remedy in JSON.
type Remedy struct {
	Change  string     `json:"change"`
	Devices int        `json:"devices,omitempty"`
	Plan    *spec.Plan `json:"plan,omitempty"`
}

// FromInfeasible returns the JSON form of the *planner.InfeasibleError in err, nil
// without one.
func FromInfeasible(err error) *Infeasible {
	var e *planner.InfeasibleError
	if !errors.As(err, &e) {
		return nil
	}
	out := &Infeasible{Request: e.Request, Why: e.Why}
	if e.Nearest != nil {
		c := FromChoice(*e.Nearest)
		out.Nearest = &c
	}
	if e.Remedy != nil {
		out.Remedy = &Remedy{e.Remedy.Change, e.Remedy.Devices, e.Remedy.Plan}
	}
	return out
}

// Planner returns i as the planner's error.
func (i *Infeasible) Planner() *planner.InfeasibleError {
	out := &planner.InfeasibleError{Request: i.Request, Why: i.Why}
	if i.Nearest != nil {
		c := i.Nearest.Planner()
		out.Nearest = &c
	}
	if i.Remedy != nil {
		out.Remedy = &planner.Remedy{Change: i.Remedy.Change, Devices: i.Remedy.Devices, Plan: i.Remedy.Plan}
	}
	return out
}

// Detail is an error in one value of a request.
type Detail struct {
	Message  string `json:"message,omitempty"`
	Location string `json:"location,omitempty"` // such as body.devices
	Value    any    `json:"value,omitempty"`
}

// Types of problems for errors that callers branch on.
const (
	TypeInfeasible   = "urn:pacer:problem:infeasible"
	TypeNotCovered   = "urn:pacer:problem:not-covered"
	TypeTooFewPoints = "urn:pacer:problem:too-few-points"
)

// sentinels maps errors to types of problems.
var sentinels = []struct {
	is   error
	name string
}{
	{planner.ErrInfeasible, TypeInfeasible},
	{perfmodel.ErrNotCovered, TypeNotCovered},
	{perfmodel.ErrTooFewPoints, TypeTooFewPoints},
}

// TypeOf returns the problem type of err, "" for other errors.
func TypeOf(err error) string {
	for _, s := range sentinels {
		if errors.Is(err, s.is) {
			return s.name
		}
	}
	return ""
}

// Error is an error response of the server. It wraps the planner's error, where it is
// one: *planner.InfeasibleError, perfmodel.ErrNotCovered or
// perfmodel.ErrTooFewPoints.
type Error struct {
	Problem
}

// Error returns the text of the planner's error, where it is one.
func (e *Error) Error() string {
	if e.Unwrap() != nil {
		return e.Detail
	}
	text := fmt.Sprintf("remote: %d %s: %s", e.Status, e.Title, e.Detail)
	for _, d := range e.Errors {
		text += fmt.Sprintf("; %s: %s", d.Location, d.Message)
	}
	return text
}

// Unwrap returns the planner's error, the sentinel of the type, or nil.
func (e *Error) Unwrap() error {
	if e.Planner != nil {
		return e.Planner.Planner()
	}
	for _, s := range sentinels {
		if e.Type == s.name {
			return s.is
		}
	}
	return nil
}
