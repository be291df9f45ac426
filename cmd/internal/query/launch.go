package query

import (
	"errors"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch"
)

// Launch is what starts a plan under a training framework.
type Launch struct {
	Framework string   `json:"framework"`
	Version   string   `json:"version" doc:"Version of the framework that the settings are for."`
	File      string   `json:"file" doc:"Name of the file."`
	Text      string   `json:"text" doc:"Content of the file."`
	Notes     []string `json:"notes" doc:"Further steps and remarks."`
}

// NewLaunch writes what starts ch under a framework. Where that cannot express it
// the error is a *FieldError that wraps launch.ErrCannotExpress.
func NewLaunch(framework string, ch planner.Choice) (*Launch, error) {
	f, err := launch.Lookup(framework)
	if err != nil {
		return nil, &FieldError{Field: "emit", Value: framework, Err: err}
	}
	s, err := f.EmitWith(ch.Config, launch.Options{Details: catalog.Details(ch.Config.Model)})
	if err != nil {
		return nil, &FieldError{Field: "emit", Value: framework, NoAnswer: errors.Is(err, launch.ErrCannotExpress), Err: err}
	}
	out := &Launch{Framework: f.Name, Version: f.Version, File: s.File, Text: s.Text, Notes: OrEmpty(s.Notes)}
	if !ch.Fits {
		out.Notes = append(out.Notes, "the plan "+Misfit(string(ch.Verdict))+": "+ch.Why)
	}
	return out, nil
}
