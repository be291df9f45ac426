package server

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/answercache"
	"github.com/pacer-ml/pacer/cmd/server/openapi"
	"github.com/pacer-ml/pacer/cmd/server/problem"
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

// endpoint is an operation with what its requests need.
type endpoint struct {
	operation
	schema *huma.Schema                                          // of the body
	quick  func(http.ResponseWriter, *bytes.Buffer) *quickAnswer // nil = none of any body; it returns nil where it has none
}

// router is the mux that huma registers operations with. It limits and counts
// requests per route.
type router struct {
	*http.ServeMux
	s       *Server
	methods map[string][]string  // by path
	ops     map[string]*endpoint // by pattern
	routes  map[string]*route    // by pattern
	other   *route               // of requests without a route
	scopes  map[string]string    // by pattern; read where absent
	queries map[string][]string  // by pattern: the parameters of the query; any where absent
	streams chan struct{}
}

// tagged are the answers with an ETag: lists that change seldom and that programs ask for often.
var tagged = []string{"GET /v1/models", "GET /v1/accelerators", "GET /v1/frameworks", "GET /v1/cards"}

// HandleFunc makes router a humago.Mux.
func (m *router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	method, path, _ := strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
	m.methods[path] = append(m.methods[path], method)
	next := http.HandlerFunc(h)
	if method == http.MethodPost {
		next = m.s.withBody(m.ops[pattern], next)
	}
	if method == http.MethodPost && m.scopes[pattern] != "" && !slices.Contains(keyed, pattern) {
		next = withoutKey(next)
	}
	if slices.Contains(tagged, pattern) {
		next = answercache.WithETag(next)
	}
	if names, ok := m.queries[pattern]; ok {
		next = withQuery(names, next)
	}
	if method != http.MethodPost {
		next = withContext(next)
	}
	m.routes[pattern] = m.s.metrics.route(path)
	m.ServeMux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		m.s.limit.under.Add(1)
		defer m.s.limit.under.Done()
		r.Header.Del("Accept") // answers are JSON, and huma would call that "json" too
		next(w, r)
	})
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

// scopeOf returns the scope that r needs.
func (m *router) scopeOf(r *http.Request) string {
	_, pattern := m.Handler(r)
	return cmp.Or(m.scopes[pattern], access.ScopeRead)
}

// routes returns the handler of all operations.
func (s *Server) routes() (http.Handler, error) {
	m := &router{ServeMux: http.NewServeMux(), s: s, methods: map[string][]string{}, ops: map[string]*endpoint{},
		routes: map[string]*route{}, other: s.metrics.route("other"),
		scopes:  map[string]string{"POST /v1/measurements": access.ScopeIngest, "POST /v1/fit": access.ScopeFit},
		queries: map[string][]string{}, streams: make(chan struct{}, maxStreams)}
	c := huma.DefaultConfig("Pacer", s.o.Version)
	c.Info.Description = "Predicts training throughput and memory for every parallelism plan. Units: seconds, samples/s, GiB of 2^30 bytes; lo and hi bound a 90 % interval. Responses have the fields of pacer's JSON output."
	c.Info.License = &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"}
	c.Info.Contact = &huma.Contact{Name: "Pacer", URL: "https://github.com/pacer-ml/pacer"}
	c.Servers = []*huma.Server{{URL: "/", Description: "This server"}}
	c.Tags = []*huma.Tag{{Name: "questions", Description: "Predictions, plans and curves, by names."}, {Name: "oracle", Description: "The same for programs, by figures."},
		{Name: "listings", Description: "What is known, stored and fitted."}, {Name: "measurements", Description: "Measurements in, models fitted."},
		{Name: "simulations", Description: "Scheduling policies on a simulated cluster."}, {Name: "operations", Description: "Health and metrics."}}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	c.Security = []map[string][]string{{"token": {}}, {}}
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.DocsPath, c.SchemasPath = "", "" // that page loads scripts from another site; schemas are in the document
	c.OpenAPIPath = ""                 // see openapi.Handlers
	c.CreateHooks = nil                // no $schema in responses
	c.Transformers = []huma.Transformer{problem.Shortened}
	c.Formats = map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat}
	c.NoFormatFallback = false
	api := humago.New(m, c)
	s.api, s.router = api, m
	s.registerQueries(api, m)
	s.registerOracle(api, m)
	s.registerListings(api, m)
	s.registerMeasurements(api, m)
	s.registerRows(api, m)
	s.registerStreams(m)
	s.registerNetwork(api, m)
	s.registerNearest(api, m)
	s.registerSimulations(api, m)
	s.registerCampaigns(api, m)
	s.registerHealth(m)
	s.registerPage(m)
	s.describe(api.OpenAPI())
	for path, h := range openapi.Handlers(api.OpenAPI()) {
		m.HandleFunc("GET "+path, h)
	}
	m.ServeMux.HandleFunc("/", m.noSuchPath)
	return compressing(s.traced(s.watched(m, s.auth(m))))
}

// minCompressed is the size from which an answer is compressed, bytes.
const minCompressed = 4 << 10

// compressing compresses the answers of next for clients that accept it.
func compressing(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(true), gzhttp.PreferZstd(true),
		gzhttp.ExceptContentTypes([]string{compressedType}))
	if err != nil {
		return nil, err
	}
	compress, vary := wrap(next), []string{"Accept-Encoding"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Accept-Encoding"]) > 0 {
			compress(w, r)
			return
		}
		w.Header()["Vary"] = vary
		next.ServeHTTP(w, r)
	}), nil
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
		problem.Write(w, problem.New(http.StatusNotFound, "", fmt.Sprintf("there is no %s; /openapi.json lists the paths", problem.Echo(r.URL.Path))))
		return
	}
	allowed := strings.Join(slices.Sorted(slices.Values(methods)), ", ")
	w.Header().Set("Allow", allowed)
	problem.Write(w, problem.New(http.StatusMethodNotAllowed, "", fmt.Sprintf("%s of %s: want %s", problem.Echo(r.Method), r.URL.Path, allowed)))
}

// body is a request with a JSON body.
type body[T any] struct{ Body T }

// ofBody returns a handler that answers a JSON body with f.
func ofBody[I, O any](f func(context.Context, *I) (O, error)) func(context.Context, *body[I]) (O, error) {
	return func(ctx context.Context, in *body[I]) (O, error) { return f(ctx, &in.Body) }
}

// reply is a response with a JSON body.
type reply[T any] struct{ Body T }

// register adds an operation with a JSON response.
func register[I, O any](s *Server, api huma.API, m *router, op operation, handle func(context.Context, *I) (O, error)) {
	e := &endpoint{operation: op}
	m.ops[op.method+" "+op.path] = e
	m.queries[op.method+" "+op.path] = queryOf[I]()
	errs := append([]int{http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusUnauthorized, http.StatusForbidden}, op.errors...)
	if op.method == http.MethodPost {
		errs = append(errs, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	timeout := s.o.Timeout
	if op.weight == fit {
		timeout = s.o.FitTimeout
	}
	huma.Register(api, huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Summary: op.summary, Description: op.doc, Tags: []string{op.tag},
		Errors: errs, MaxBodyBytes: s.o.MaxBody + 1, BodyReadTimeout: -1, SkipValidateBody: true, // withBody does
	}, func(ctx context.Context, in *I) (*reply[O], error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		out, err := admitted(ctx, s, op.weight, costOf(in), func() (out O, err error) {
			ctx, span := s.trace.span(ctx, op.id)
			defer func() { endSpan(span, err) }()
			return handle(ctx, in)
		})
		if err != nil {
			return nil, failure(ctx, err)
		}
		return &reply[O]{out}, nil
	})
	if path := api.OpenAPI().Paths[op.path]; path != nil {
		e.schema = bodySchema(path.Post)
	}
}

// failure returns the problem of an error, which the log has where it is the server's.
func failure(ctx context.Context, err error) *problem.Problem {
	p := problem.Of(err)
	if p.Status >= 500 {
		requestOf(ctx).err = err
	}
	return p
}

// describe completes the OpenAPI document, also by the operations that are not registered with huma.
func (s *Server) describe(doc *huma.OpenAPI) {
	const text, refused, limited = "text/plain", http.StatusForbidden, http.StatusTooManyRequests
	const one = "/v1/simulations/{id}"
	selects := func(name, of string) *openapi.Query {
		return &openapi.Query{Name: name, Doc: "Only measurements " + of + "."}
	}
	streamed := []int{http.StatusUnauthorized, refused, http.StatusUnprocessableEntity, limited, http.StatusServiceUnavailable}
	openapi.Add(doc,
		openapi.Operation{Path: "/v1/backup", ID: "backup", Tag: "measurements", Summary: "Copy of the store", Doc: "As pacer store backup: the store as of the start of the answer, for pacer store restore.",
			Type: compressedType, Binary: true, Errors: streamed},
		openapi.Operation{Path: "/v1/measurements/export", ID: "export", Tag: "measurements", Summary: "Stored measurements as a file", Doc: "As pacer export.", Type: compressedType, Binary: true, Errors: append(streamed, http.StatusNotFound),
			Queries: []*openapi.Query{selects("model", "of these, by any of their names"), selects("accelerator", "on these, by any of their names"), selects("source", "from these"), {Name: "format", Doc: "Kind of file, arrow if absent.", Enum: []any{"arrow", "parquet"}}}},
		openapi.Operation{Path: one + "/report", ID: "simulation-report", Tag: "simulations", Summary: "Report of a simulation", Doc: "As pacer simulate --html: one page without further files.", Type: "text/html",
			Errors: append(streamed, http.StatusNotFound)},
		openapi.Operation{Path: "/healthz", ID: "healthz", Tag: "operations", Summary: "Whether the server answers", Doc: "Nothing else is checked.", Type: text, Errors: []int{refused}, Open: true},
		openapi.Operation{Path: "/readyz", ID: "readyz", Tag: "operations", Summary: "Whether requests should be sent here", Doc: "503 says why not.", Type: text, Errors: []int{refused, http.StatusServiceUnavailable}, Open: true},
		openapi.Operation{Path: "/metrics", ID: "metrics", Tag: "operations", Summary: "Metrics", Doc: "In the format of Prometheus.", Type: text, Errors: []int{http.StatusUnauthorized, refused, limited}})
	report := doc.Paths[one+"/report"].Get
	report.Parameters = doc.Paths[one].Get.Parameters
	var paths []string
	for _, pattern := range tagged {
		paths = append(paths, strings.TrimPrefix(pattern, "GET "))
	}
	openapi.Complete(doc, paths, []string{"Summary", "Learned", "Lateness", "Gaps"}) // figures of simulations may be undefined
}
