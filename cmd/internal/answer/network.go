package answer

import (
	"bytes"
	"encoding/json"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/huggingface"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch"
)

// NetworkRequest has the description of a network in the form of the Hugging Face Hub.
type NetworkRequest struct {
	Config map[string]any `json:"config" doc:"The content of a config.json."`
}

// Network is a network as requests describe it.
type Network struct {
	Network  spec.Model `json:"network" doc:"For network of other requests."`
	Params   float64    `json:"params" doc:"Number of parameters."`
	Active   float64    `json:"active_params" doc:"Number of parameters that a token visits."`
	Warnings []string   `json:"warnings" doc:"What the file does not say and is assumed."`
}

// Frameworks is the answer with the training frameworks that plans are written for.
type Frameworks struct {
	Frameworks []FrameworkEntry `json:"frameworks"`
}

// FrameworkEntry is a training framework that plans are written for.
type FrameworkEntry struct {
	Name    string `json:"name" doc:"For emit of other requests."`
	Version string `json:"version" doc:"Version of the framework that the settings are for."`
	Doc     string `json:"doc"`
	File    string `json:"file" doc:"Name of the file."`
}

// ReadNetwork returns the network of a config.json.
func ReadNetwork(config map[string]any) (Network, error) {
	b, err := json.Marshal(config)
	if err != nil {
		return Network{}, err
	}
	m, notes, err := huggingface.Read(bytes.NewReader(b))
	if err != nil {
		return Network{}, &query.FieldError{Field: "config", Err: err}
	}
	return Network{Network: m, Params: m.Params(), Active: m.ActiveParams(), Warnings: query.Texts(notes)}, nil
}

// NewFrameworks lists the training frameworks that plans are written for.
func NewFrameworks() Frameworks {
	out := Frameworks{Frameworks: []FrameworkEntry{}}
	for _, f := range launch.Frameworks() {
		out.Frameworks = append(out.Frameworks, FrameworkEntry{Name: f.Name, Version: f.Version, Doc: f.Doc, File: f.File})
	}
	return out
}
