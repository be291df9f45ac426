package accuracy

import (
	"context"
	"errors"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Protocol is one measurement: the rows that a family is fitted to, and the rows
// that it is scored on.
type Protocol struct {
	Name string
	Doc  string // one line

	run func(ctx context.Context, b *Bench, c Contender) (Result, error)
	// alone protocols measure time, and run without other protocols.
	alone bool
}

// Standing states whether a family's parameters depend on the scored rows.
type Standing string

const (
	// LeftOut: no parameter was fitted to a scored row.
	LeftOut Standing = "left out"
	// InView: constants were chosen or fitted with scored rows in view, which is
	// not accuracy.
	InView Standing = "in view"
	// InSample: every scored row was fitted. Not accuracy either; it is for
	// comparison with published in-sample figures.
	InSample Standing = "in sample"
)

// Limit bounds a figure; 0 is no bound.
type Limit struct {
	AtLeast float64 `json:"at_least,omitempty"`
	AtMost  float64 `json:"at_most,omitempty"`
}

// Keeps reports whether v is within l.
func (l Limit) Keeps(v float64) bool {
	return (l.AtLeast == 0 || v >= l.AtLeast) && (l.AtMost == 0 || v <= l.AtMost)
}

// Figure is a figure of merit of a protocol, with its required and its aimed limit.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "1" a fraction, "rows", "cells", "sources", "s", "1/s", "ln" of the step time
	Must  Limit   `json:"must,omitzero"`
	Aim   Limit   `json:"aim,omitzero"`
}

// Result is the result of one family under one protocol.
type Result struct {
	Protocol string   `json:"protocol"`
	Family   string   `json:"family"`
	Standing Standing `json:"standing"`
	// Unable is the reason that there is no result; no other field is set then.
	Unable string `json:"unable,omitempty"`
	Summary
	Figures  []Figure  `json:"figures,omitempty"`
	Regret   *Regret   `json:"regret,omitempty"`
	Parts    []Part    `json:"parts,omitempty"` // sources, job types, cells or models
	Refusals []Refusal `json:"refusals,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
	WallSec  float64   `json:"elapsed_s"` // of this result, without values that other results had computed
}

// scored returns the Result of predictions, without figures.
func scored(predictions []prediction) Result {
	return Result{Standing: LeftOut, Summary: summarize(predictions), Parts: byPart(predictions, (*prediction).ape), Refusals: refusals(predictions)}
}

// withRegret adds the regret of choosing by the predictions, if there are choices.
func (r Result) withRegret(predictions []prediction) Result {
	if g := regret(predictions); g.Groups > 0 {
		r.Regret = &g
	}
	return r
}

// fraction returns a figure that is a share or a relative error.
func fraction(name string, v, must, aim float64) Figure {
	return Figure{Name: name, Value: v, Unit: "1", Must: Limit{AtMost: must}, Aim: Limit{AtMost: aim}}
}

// Protocols returns every protocol, in the order they are reported.
func Protocols() []Protocol {
	return slices.Concat(tracesProtocols(), cellProtocols(), serverProtocols(), publishedProtocols(), outlierProtocols(), chosenProtocols(), memoryProtocols(), choiceProtocols(), speedProtocols())
}

// LookupProtocol returns the protocol with a name. The error for an unknown one
// lists all names.
func LookupProtocol(name string) (Protocol, error) {
	set := named.NewSet[Protocol]("accuracy", "protocol")
	for _, p := range Protocols() {
		set.Add(p.Name, p)
	}
	return set.Get(name)
}

// requirePrediction returns an error for a Result in which every row is refused.
func requirePrediction(r Result, err error) (Result, error) {
	if err == nil && r.Rows == 0 && len(r.Refusals) > 0 {
		err = unablef("predicts none: %s", r.Refusals[0].Why)
	}
	return r, err
}

// recordUnable converts an unable error into a Result with that reason.
func recordUnable(r Result, err error) (Result, error) {
	var u unable
	if errors.As(err, &u) {
		return Result{Unable: u.Error(), Standing: LeftOut}, nil
	}
	return r, err
}
