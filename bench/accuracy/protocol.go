package accuracy

import (
	"context"
	"errors"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Protocol is one question: which rows a family sees, and on which it is
// judged.
type Protocol struct {
	Name string
	Doc  string // one line

	run func(ctx context.Context, b *Bench, c Contender) (Result, error)
	// alone protocols take times, and run with nothing beside them.
	alone bool
}

// Standing says whether a family's parameters have seen the rows it is judged
// on.
type Standing string

const (
	// LeftOut: no parameter was fitted to a scored row.
	LeftOut Standing = "left out"
	// InView: constants were chosen or fitted with scored rows in view, which is
	// not accuracy.
	InView Standing = "in view"
	// InSample: every scored row was fitted. Not accuracy either; it is there
	// to be compared with what others report so.
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

// Figure is what a protocol is judged by.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "1" a fraction, "rows", "cells", "s", "1/s", "ln" of the step time
	Must  Limit   `json:"must,omitzero"`
	Aim   Limit   `json:"aim,omitzero"`
}

// Result is how one family did under one protocol.
type Result struct {
	Protocol string   `json:"protocol"`
	Family   string   `json:"family"`
	Standing Standing `json:"standing"`
	// Unable is why there is no answer; nothing else is set then.
	Unable string `json:"unable,omitempty"`
	Summary
	Figures  []Figure  `json:"figures,omitempty"`
	Regret   *Regret   `json:"regret,omitempty"`
	Parts    []Part    `json:"parts,omitempty"` // sources, job types, cells or models
	Refusals []Refusal `json:"refusals,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
	WallSec  float64   `json:"elapsed_s"` // of this result; what others had worked out already is not in it
}

// scored is the Result of answers, judged by nothing yet.
func scored(answers []answer) Result {
	return Result{Standing: LeftOut, Summary: summarize(answers), Parts: byPart(answers, (*answer).ape), Refusals: refusals(answers)}
}

// withRegret adds what choosing among the answers costs, if there are groups.
func (r Result) withRegret(answers []answer) Result {
	if g := regret(answers); g.Groups > 0 {
		r.Regret = &g
	}
	return r
}

// fraction is a figure that is a share or a relative error.
func fraction(name string, v, must, aim float64) Figure {
	return Figure{Name: name, Value: v, Unit: "1", Must: Limit{AtMost: must}, Aim: Limit{AtMost: aim}}
}

// Protocols returns every protocol, in the order they are reported.
func Protocols() []Protocol {
	return slices.Concat(tracesProtocols(), cellProtocols(), serverProtocols(), publishedProtocols(), memoryProtocols(), choiceProtocols(), speedProtocols())
}

// LookupProtocol returns the protocol with a name; the error of an unknown one
// lists those there are.
func LookupProtocol(name string) (Protocol, error) {
	set := named.NewSet[Protocol]("accuracy", "protocol")
	for _, p := range Protocols() {
		set.Add(p.Name, p)
	}
	return set.Get(name)
}

// answered makes an error of a Result in which every row is refused.
func answered(r Result, err error) (Result, error) {
	if err == nil && r.Rows == 0 && len(r.Refusals) > 0 {
		err = unablef("predicts none: %s", r.Refusals[0].Why)
	}
	return r, err
}

// settle turns an error that says a family cannot answer into a Result that
// says so.
func settle(r Result, err error) (Result, error) {
	var u unable
	if errors.As(err, &u) {
		return Result{Unable: u.Error(), Standing: LeftOut}, nil
	}
	return r, err
}
