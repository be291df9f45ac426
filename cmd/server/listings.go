package server

import (
	"context"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Cards is the JSON of pacer ls cards.
type Cards struct {
	Cards []perfmodel.Card `json:"cards"`
}

// Measurements is the JSON of pacer ls measurements.
type Measurements struct {
	Measurements []store.Tally `json:"measurements"`
}

// Version is the JSON of pacer version, with the contract of the API.
type Version struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Commit   string `json:"commit,omitempty" doc:"Of git, of what the server was built from; absent if the build does not say it."`
	Contract string `json:"contract" doc:"The first part of every path. Paths and fields are only added to a contract."`
}

func (s *Server) registerListings(api huma.API, m *router) {
	const tag = "listings"
	get := func(path, id, summary, doc string) operation {
		return operation{http.MethodGet, path, id, tag, light, summary, doc, nil}
	}
	register(s, api, m, get("/v1/models", "models", "Known networks", "As pacer ls models."),
		func(ctx context.Context, _ *struct{}) (answer.Models, error) {
			out, err := s.resolver.Models(ctx)
			return answer.Models{Models: out}, err
		})
	register(s, api, m, get("/v1/accelerators", "accelerators", "Known device types", "As pacer ls accelerators."),
		func(ctx context.Context, _ *struct{}) (answer.Accelerators, error) {
			out, err := s.resolver.Accelerators(ctx)
			return answer.Accelerators{Accelerators: out}, err
		})
	register(s, api, m, get("/v1/cards", "cards", "Performance models fitted here", "As pacer ls cards: the rows each was fitted to, and its error on held-out rows."),
		func(context.Context, *struct{}) (Cards, error) {
			return Cards{append([]perfmodel.Card{}, s.resolver.Cards()...)}, nil
		})
	register(s, api, m, get("/v1/measurements", "measurements", "Measurements in the store", "As pacer ls measurements: how many of each model, accelerator, source and outcome."),
		func(ctx context.Context, _ *struct{}) (Measurements, error) {
			tallies, err := s.resolver.Summary(ctx)
			return Measurements{append([]store.Tally{}, tallies...)}, err
		})
	register(s, api, m, get("/v1/version", "version", "Version and build of the server", "As pacer version."),
		func(context.Context, *struct{}) (Version, error) {
			return Version{s.o.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, commit(debug.ReadBuildInfo()), "v1"}, nil
		})
}

// commit returns the commit of a build, with "+changes" where its files were changed since.
func commit(build *debug.BuildInfo, ok bool) (out string) {
	if !ok {
		return ""
	}
	settings := map[string]string{}
	for _, s := range build.Settings {
		settings[s.Key] = s.Value
	}
	if out = settings["vcs.revision"]; out != "" && settings["vcs.modified"] == "true" {
		out += "+changes"
	}
	return out
}

// registerHealth adds liveness, readiness and metrics, which are not in the OpenAPI
// document.
func (s *Server) registerHealth(m *router) {
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, "ok\n") })
	m.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if s.ending.Load() {
			problem.Write(w, problem.New(http.StatusServiceUnavailable, "", "the server is ending"))
			return
		}
		if s.o.Replica != nil {
			if err := s.o.Replica.Ready(); err != nil {
				problem.Write(w, problem.New(http.StatusServiceUnavailable, "", err.Error()))
				return
			}
		}
		for _, err := range s.db.Query(r.Context(), store.Filter{}) { // reads at most one row
			if err != nil {
				requestOf(r.Context()).err = err
				problem.Write(w, problem.New(http.StatusServiceUnavailable, "", "the store cannot be read"))
				return
			}
			break
		}
		writeText(w, "ready\n")
	})
	m.HandleFunc("GET /metrics", s.metrics.handler().ServeHTTP)
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(text)) // the client may have disconnected
}
