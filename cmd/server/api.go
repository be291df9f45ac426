package server

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pacer-ml/pacer/planner/remote"
)

// weight is the cost class of an operation.
type weight int

const (
	light  weight = iota // a look-up or one prediction
	search               // searches plans
	fit                  // fits models
	vital                // health and metrics: answered at any load
)

// operation is one operation of the API.
type operation struct {
	method, path, id, tag string
	weight                weight
	summary, doc          string
	errors                []int
}

// router is the mux that huma registers operations with. It limits and counts
// requests per route.
type router struct {
	*http.ServeMux
	s       *Server
	methods map[string][]string // by path
	weights map[string]weight   // by pattern; light where absent
	routes  map[string]*route   // by pattern
	other   *route              // of requests without a route
	// precheck, by pattern, may answer a request by its body; it then returns true,
	// and the operation does not run.
	precheck map[string]func(w http.ResponseWriter, r *http.Request, body []byte) bool
}

// HandleFunc makes router a humago.Mux.
func (m *router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	method, path, _ := strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
	m.methods[path] = append(m.methods[path], method)
	next := http.HandlerFunc(h)
	if method == http.MethodPost {
		next = m.s.withBody(m.precheck[pattern], next)
	}
	m.routes[pattern] = m.s.metrics.route(path)
	m.ServeMux.HandleFunc(pattern, m.s.limited(m.weights[pattern], next))
}

// routeOf returns the route of r, also where r was refused before routing.
func (m *router) routeOf(r *http.Request) *route {
	pattern := r.Pattern
	if pattern == "" {
		_, pattern = m.Handler(r)
	}
	if t, ok := m.routes[pattern]; ok {
		return t
	}
	return m.other
}

// routes returns the handler of all operations.
func (s *Server) routes() (http.Handler, error) {
	m := &router{ServeMux: http.NewServeMux(), s: s, methods: map[string][]string{}, weights: map[string]weight{},
		routes: map[string]*route{}, other: s.metrics.route("other"),
		precheck: map[string]func(http.ResponseWriter, *http.Request, []byte) bool{}}
	c := huma.DefaultConfig("Pacer", s.o.Version)
	c.Info.Description = "Predicts training throughput and memory for every parallelism plan. Units: seconds, samples/s, GiB of 2^30 bytes; lo and hi bound a 90 % interval. Responses have the fields of pacer's JSON output."
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	c.Security = []map[string][]string{{"token": {}}, {}}
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.DocsPath, c.SchemasPath = "", "" // that page loads scripts from another site; schemas are in the document
	c.CreateHooks = nil                // no $schema in responses
	c.Transformers = []huma.Transformer{shortened}
	c.Formats = map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat}
	c.NoFormatFallback = false
	api := humago.New(m, c)
	s.api = api
	s.registerQueries(api, m)
	s.registerOracle(api, m)
	s.registerListings(api, m)
	s.registerMeasurements(api, m)
	s.registerNetwork(api, m)
	s.registerNearest(api, m)
	s.registerHealth(m)
	s.registerPage(m)
	m.ServeMux.HandleFunc("/", m.noSuchPath)
	return s.watched(m, s.auth(m)), nil
}

// schemaName names a type in the OpenAPI document. Types of package remote get a
// prefix, since some have the names of other types.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == oraclePackage {
		return "Oracle" + name
	}
	return name
}

var oraclePackage = reflect.TypeFor[remote.Request]().PkgPath()

// noSuchPath answers requests without an operation.
func (m *router) noSuchPath(w http.ResponseWriter, r *http.Request) {
	methods := m.methods[r.URL.Path]
	if len(methods) == 0 {
		writeProblem(w, newProblem(http.StatusNotFound, "", fmt.Sprintf("there is no %s; /openapi.json lists the paths", cut(r.URL.Path, maxEcho))))
		return
	}
	allowed := strings.Join(slices.Sorted(slices.Values(methods)), ", ")
	w.Header().Set("Allow", allowed)
	writeProblem(w, newProblem(http.StatusMethodNotAllowed, "", fmt.Sprintf("%s of %s: want %s", cut(r.Method, maxEcho), r.URL.Path, allowed)))
}

// limited bounds the number of concurrent requests and their time.
func (s *Server) limited(cost weight, next http.HandlerFunc) http.HandlerFunc {
	timeout := s.o.Timeout
	if cost == fit {
		timeout = s.o.FitTimeout
	}
	if cost == vital {
		return func(w http.ResponseWriter, r *http.Request) {
			s.limit.pass()
			defer s.limit.passed()
			next(w, r)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.limit.enter() {
			s.overloaded(w, "requests", s.o.MaxRequests)
			return
		}
		defer s.limit.leave()
		if cost == light {
			next(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		if !s.limit.search(ctx) {
			s.overloaded(w, "searches", s.o.MaxSearches)
			return
		}
		defer s.limit.searched()
		next(w, r.WithContext(ctx))
	}
}

func (s *Server) overloaded(w http.ResponseWriter, what string, most int) {
	s.metrics.refused.WithLabelValues(what).Inc()
	w.Header().Set("Retry-After", retryAfter)
	writeProblem(w, newProblem(http.StatusServiceUnavailable, typeOverloaded, fmt.Sprintf("%d %s are running; retry in %s s", most, what, retryAfter)))
}

// body is a request with a JSON body.
type body[T any] struct{ Body T }

// answer is a response with a JSON body.
type answer[T any] struct{ Body T }

// register adds an operation with a JSON response.
func register[I, O any](s *Server, api huma.API, m *router, op operation, handle func(context.Context, *I) (O, error)) {
	m.weights[op.method+" "+op.path] = op.weight
	errs := append([]int{http.StatusServiceUnavailable, http.StatusUnauthorized, http.StatusForbidden}, op.errors...)
	if op.method == http.MethodPost {
		errs = append(errs, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	huma.Register(api, huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Summary: op.summary, Description: op.doc, Tags: []string{op.tag},
		Errors: errs, MaxBodyBytes: s.o.MaxBody + 1, BodyReadTimeout: -1,
	}, func(ctx context.Context, in *I) (*answer[O], error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, problem(err)
		}
		return &answer[O]{out}, nil
	})
}
