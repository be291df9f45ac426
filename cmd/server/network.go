package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/page"
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

// registerNetwork adds what the page needs besides questions, which programs may use too.
func (s *Server) registerNetwork(api huma.API, m *router) {
	register(s, api, m, operation{http.MethodPost, "/v1/network", "network", "listings", light, "The network of a config.json",
		"Reads the file of the Hugging Face Hub that describes a model. The answer's network goes into other requests.", []int{422}},
		func(_ context.Context, in *body[NetworkRequest]) (Network, error) { return readNetwork(in.Body.Config) })
	register(s, api, m, operation{http.MethodGet, "/v1/frameworks", "frameworks", "listings", light, "Training frameworks that plans are written for",
		"The values of emit.", nil},
		func(context.Context, *struct{}) (Frameworks, error) { return newFrameworks(), nil })
}

func readNetwork(config map[string]any) (Network, error) {
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

func newFrameworks() Frameworks {
	out := Frameworks{Frameworks: []FrameworkEntry{}}
	for _, f := range launch.Frameworks() {
		out.Frameworks = append(out.Frameworks, FrameworkEntry{Name: f.Name, Version: f.Version, Doc: f.Doc, File: f.File})
	}
	return out
}

// registerPage adds the files of the web page, which are not in the OpenAPI document.
func (s *Server) registerPage(m *router) {
	for _, f := range page.Files() {
		m.HandleFunc("GET "+f.Pattern(), f.ServeHTTP)
	}
}
