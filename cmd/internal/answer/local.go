package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Local answers requests of the query API without a server: those that need neither stored measurements nor fitted
// models. It is safe for concurrent use.
type Local struct {
	routes map[string]func(context.Context, []byte) (any, error)
}

// NewLocal returns a Local that answers from the catalog and the analytic model.
func NewLocal() (*Local, error) {
	none, err := registry.Open("no-models")
	if err != nil {
		return nil, err
	}
	r := &query.Resolver{Fitted: none, Read: func(func(reader.Store) error) error { return nil }}
	a := New(r)
	return &Local{map[string]func(context.Context, []byte) (any, error){
		"/v1/predict":   local(a.Predict),
		"/v1/plan":      local(a.Plan),
		"/v1/curve":     local(a.Curve),
		"/v1/recommend": local(a.Recommend),
		"/v1/fit-check": local(a.FitCheck),
		"/v1/check":     local(a.Check),
		"/v1/network":   local(func(_ context.Context, in *NetworkRequest) (Network, error) { return ReadNetwork(in.Config) }),
		"/v1/frameworks": func(context.Context, []byte) (any, error) {
			return NewFrameworks(), nil
		},
		"/v1/models": func(ctx context.Context, _ []byte) (any, error) {
			out, err := r.Models(ctx)
			return Models{out}, err
		},
		"/v1/accelerators": func(ctx context.Context, _ []byte) (any, error) {
			out, err := r.Accelerators(ctx)
			return Accelerators{out}, err
		},
	}}, nil
}

// Models is the JSON of pacer ls models.
type Models struct {
	Models []query.ModelEntry `json:"models"`
}

// Accelerators is the JSON of pacer ls accelerators.
type Accelerators struct {
	Accelerators []query.AcceleratorEntry `json:"accelerators"`
}

// local reads a request, which must have no unknown fields, and answers it with of.
func local[A, B any](of func(context.Context, *A) (B, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, body []byte) (any, error) {
		var in A
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			return nil, unreadable(err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return nil, &query.FieldError{Field: "request", Err: errors.New("the request goes on after its end")}
		}
		return of(ctx, &in)
	}
}

// unreadable says which field of a request has a value of the wrong type, or what else is wrong with its JSON.
func unreadable(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		return &query.FieldError{Field: field, Err: fmt.Errorf("%s is a JSON %s, which it cannot be", field, wrong.Value)}
	}
	return &query.FieldError{Field: "request", Err: fmt.Errorf("the request cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))}
}

// maxLocal bounds the time of one answer: a browser may have one core, and the user waits.
const maxLocal = time.Minute

// Answer returns the status and the JSON that a server gives to body at path; body is nil for GET.
func (l *Local) Answer(ctx context.Context, path string, body []byte) (status int, answer []byte) {
	ctx, cancel := context.WithTimeout(ctx, maxLocal)
	defer cancel()
	out, err := l.answer(ctx, path, body)
	if err != nil {
		p := ProblemOf(err)
		out, status = p, p.Status
	} else {
		status = 200
	}
	answer, err = json.Marshal(out)
	if err != nil { // NaN, which no answer has
		return 500, []byte(`{"status":500,"title":"Internal Server Error","detail":"the answer cannot be written"}`)
	}
	return status, answer
}

func (l *Local) answer(ctx context.Context, path string, body []byte) (any, error) {
	u, err := url.Parse(path)
	if err != nil {
		return nil, errNeedsServer
	}
	of, ok := l.routes[u.Path]
	if !ok {
		return nil, errNeedsServer
	}
	return of(ctx, body)
}

var errNeedsServer = errors.New("this page has no server, so no measurements and no fitted models: pacer serve answers this")
