package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/cmd/server/simqueue"
)

// simulationID selects a simulation by the path of a request.
type simulationID struct {
	ID string `path:"id" maxLength:"16"`
}

// simulateRequest is a simqueue.SimulationRequest that may be repeated.
type simulateRequest struct {
	Key     string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~ ]*$" patternDescription:"printable ASCII" doc:"Any printable ASCII text of the client's, new for each request. A request that is repeated with it gets the simulation of the first one, while that is kept. Tokens have keys of their own."`
	Body    simqueue.SimulationRequest
	RawBody []byte
}

func (s *Server) registerSimulations(api huma.API, m *router) {
	const tag, path, one = "simulations", "/v1/simulations", "/v1/simulations/{id}"
	m.scopes["POST "+path], m.scopes["DELETE "+one] = access.ScopeFit, access.ScopeFit
	register(s, api, m, operation{http.MethodPost, path, "simulate", tag, light, "Simulate scheduling policies",
		fmt.Sprintf("As pacer simulate. The answer comes at once, and the simulation runs when those before it have ended. The last %d are kept.", simqueue.MaxSimulations), []int{404}},
		func(ctx context.Context, in *simulateRequest) (simqueue.Simulation, error) {
			out, err := s.simulations.Add(ctx, &in.Body, simqueue.Once{Client: requestOf(ctx).token, Key: in.Key, Sum: sha256.Sum256(in.RawBody)})
			if errors.Is(err, simqueue.ErrFull) {
				err = s.busy("simulations", 10*time.Second, err.Error())
			}
			return out, err
		})
	register(s, api, m, operation{http.MethodGet, path, "simulations", tag, light, "Simulations", "The newest first, without figures.", nil},
		func(context.Context, *struct{}) (simqueue.Simulations, error) { return s.simulations.List(), nil })
	register(s, api, m, operation{http.MethodGet, one, "simulation", tag, light, "One simulation", "Its progress, and its figures once it is done.", []int{404}},
		func(_ context.Context, in *simulationID) (simqueue.Simulation, error) {
			return s.simulations.Get(in.ID)
		})
	register(s, api, m, operation{http.MethodDelete, one, "delete-simulation", tag, light, "Delete a simulation", "One that has not ended is cancelled.", []int{404}},
		func(_ context.Context, in *simulationID) (simqueue.Simulation, error) {
			return s.simulations.Remove(in.ID)
		})
	m.HandleFunc("GET "+one+"/charts", func(w http.ResponseWriter, r *http.Request) {
		_, charts, err := s.simulations.Report(r.PathValue("id"))
		if err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(charts)
	})
	m.HandleFunc("GET "+one+"/report", func(w http.ResponseWriter, r *http.Request) {
		html, _, err := s.simulations.Report(r.PathValue("id"))
		if err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", inlinePolicy(html))
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(html)
	})
}

// simulationPanicked counts and logs a panic of a simulation.
func (s *Server) simulationPanicked(id string, value any, stack []byte) {
	s.metrics.panics.Inc()
	s.o.Log.Error("panic", "simulation", id, "value", fmt.Sprint(value), "stack", string(stack))
}

// inlined is a script or a style sheet within a page.
var inlined = regexp.MustCompile(`(?s)<(script|style)[^>]*>(.*?)</(?:script|style)>`)

// inlinePolicy is the content security policy of a page that is one file: it runs and shows what it has, and nothing
// else, as a document of no origin.
func inlinePolicy(html []byte) string {
	sources := map[string]string{}
	for _, m := range inlined.FindAllSubmatch(html, -1) {
		sum := sha256.Sum256(m[2])
		sources[string(m[1])] += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src" + sources["script"] + "; style-src" + sources["style"] + "; img-src data:; base-uri 'none'; form-action 'none'; sandbox allow-scripts"
}
