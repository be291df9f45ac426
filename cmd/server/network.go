package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/server/page"
)

// registerNetwork adds what the page needs besides questions, which programs may use too.
func (s *Server) registerNetwork(api huma.API, m *router) {
	register(s, api, m, operation{http.MethodPost, "/v1/network", "network", "listings", light, "The network of a config.json",
		"Reads the file of the Hugging Face Hub that describes a model. The answer's network goes into other requests.", []int{422}},
		func(_ context.Context, in *body[answer.NetworkRequest]) (answer.Network, error) {
			return answer.ReadNetwork(in.Body.Config)
		})
	register(s, api, m, operation{http.MethodGet, "/v1/frameworks", "frameworks", "listings", light, "Training frameworks that plans are written for",
		"The values of emit.", nil},
		func(context.Context, *struct{}) (answer.Frameworks, error) { return answer.NewFrameworks(), nil })
}

// registerPage adds the files of the web page, which are not in the OpenAPI document.
func (s *Server) registerPage(m *router) {
	for _, f := range page.Files() {
		m.HandleFunc("GET "+f.Pattern(), f.ServeHTTP)
	}
}
