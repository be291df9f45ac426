package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Options configure a Client. The zero value works with a server on loopback.
type Options struct {
	// Token is the bearer token. Servers that other machines can reach demand one.
	Token string
	// Family is the family of performance models to use; "" = the best for each model
	// and accelerator.
	Family string
	// HTTP sends the requests; nil = a client with up to 256 idle connections, which a unix: address needs. It asks for
	// compressed answers unless the server is on this machine, where compression costs more than it saves. The local end of
	// an SSH tunnel, at localhost, counts as this machine too: it needs a client of its own to compress.
	HTTP *http.Client
	// Retries is how often a request is repeated while the server is overloaded and
	// sends Retry-After; 0 = 4, below 0 = never.
	Retries int
	// MaxWait bounds the wait before each repetition; 0 = 10 s.
	MaxWait time.Duration
	// Timeout bounds each try, the answer included; 0 = only the context bounds it.
	Timeout time.Duration
	// Patience is how long a request that changes nothing, or has an idempotency key, is repeated while the server is
	// overloaded, hangs or is restarted; 0 = only Retries bounds repetitions.
	Patience time.Duration
	// Flight is the address, HOST:PORT, at which the server answers Arrow Flight: that of --grpc-listen. Rows, PutRows and
	// PredictAll send record batches there, which cost less than JSON; "" = they send JSON. Its TLS is that of HTTP.
	Flight string
}

// Client sends requests to pacer serve. It is safe for concurrent use and implements
// scheduler.Oracle. Errors of the server are *Error.
type Client struct {
	address, base string // base is the address for HTTP
	o             Options
	flights       *grpc.ClientConn // nil without Options.Flight
}

// New returns a client of the server at address, such as http://127.0.0.1:8470 or unix:/run/pacer.sock.
func New(address string, o Options) (*Client, error) {
	base := strings.TrimSuffix(address, "/")
	socket, unix := strings.CutPrefix(address, "unix:")
	if unix {
		base = "http://localhost"
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || unix && socket == "" {
		return nil, fmt.Errorf("remote: %q is not the address of a server, want a form like http://127.0.0.1:8470 or unix:/run/pacer.sock", address)
	}
	for name, d := range map[string]time.Duration{"longest wait": o.MaxWait, "timeout": o.Timeout, "patience": o.Patience} {
		if d < 0 {
			return nil, fmt.Errorf("remote: %s %v is negative", name, d)
		}
	}
	if unix && o.HTTP != nil {
		return nil, fmt.Errorf("remote: %q needs a client of its own: leave out Options.HTTP", address)
	}
	if o.HTTP == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256
		transport.DisableCompression = unix || loopback(u.Hostname())
		if unix {
			transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			}
		}
		o.HTTP = &http.Client{Transport: transport}
	}
	o.Retries = cmp.Or(o.Retries, 4)
	o.MaxWait = cmp.Or(o.MaxWait, 10*time.Second)
	c := &Client{address: address, base: base, o: o}
	if o.Flight != "" {
		if c.flights, err = dialFlight(o.Flight, u.Scheme == "https", o.HTTP.Transport); err != nil {
			return nil, fmt.Errorf("remote: %q is not an address for Arrow Flight, want a form like 127.0.0.1:8471: %w", o.Flight, err)
		}
	}
	return c, nil
}

// loopback reports whether host is this machine, by number or as localhost.
func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Close closes the connections that no request uses, and that of Arrow Flight.
func (c *Client) Close() error {
	c.o.HTTP.CloseIdleConnections()
	if c.flights == nil {
		return nil
	}
	return c.flights.Close()
}

// Address returns the address that New was given.
func (c *Client) Address() string { return c.address }

// Predict returns the prediction of the server's performance model.
func (c *Client) Predict(ctx context.Context, cfg spec.Config) (spec.Prediction, error) {
	if err := perfmodel.NotAlone("remote", &cfg); err != nil {
		return spec.Prediction{}, err
	}
	var out Prediction
	err := c.post(ctx, PathPredict, PredictRequest{cfg, c.o.Family}, &out)
	return out.Prediction(), err
}

// Best returns the best choice that fits, or an error that wraps
// planner.ErrInfeasible.
func (c *Client) Best(ctx context.Context, r planner.Request) (planner.Choice, error) {
	var out Choice
	err := c.post(ctx, PathBest, c.plan(r), &out)
	return out.Planner(), err
}

// Rank returns the choices of a request, best first.
func (c *Client) Rank(ctx context.Context, r planner.Request) (planner.Ranking, error) {
	var out Ranking
	if err := c.post(ctx, PathRank, c.plan(r), &out); err != nil {
		return planner.Ranking{}, err
	}
	return out.Planner(), nil
}

// Curve returns the sensitivity curve of a request.
func (c *Client) Curve(ctx context.Context, r planner.Request) (planner.Curve, error) {
	var out Curve
	if err := c.post(ctx, PathCurve, c.plan(r), &out); err != nil {
		return planner.Curve{}, err
	}
	return out.Planner()
}

func (c *Client) plan(r planner.Request) PlanRequest { return PlanRequest{FromRequest(r), c.o.Family} }

// Do sends a request of docs/reference/api.md, for which package api has types. in is sent as JSON unless it is nil, and
// the answer is decoded into out unless that is nil. path has the query. Patience is for method GET.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	return c.send(ctx, &request{method: method, path: path, in: in, repeat: method == http.MethodGet, read: decoder(out)})
}

// Ask is Do for a POST that changes nothing on the server, with Patience.
func (c *Client) Ask(ctx context.Context, path string, in, out any) error {
	return c.post(ctx, path, in, out)
}

// post sends a question.
func (c *Client) post(ctx context.Context, path string, in, out any) error {
	return c.send(ctx, &request{method: http.MethodPost, path: path, in: in, repeat: true, read: decoder(out)})
}

// request is what is sent, and what is done with its answer.
type request struct {
	method, path string
	in           any    // the body; nil = none
	key          string // the idempotency key; "" = none
	repeat       bool   // whether a repetition changes nothing
	read         func(io.Reader) error

	body []byte
}

// decoder decodes JSON into out, unless that is nil.
func decoder(out any) func(io.Reader) error {
	return func(r io.Reader) error {
		if out == nil {
			return nil
		}
		return json.NewDecoder(r).Decode(out)
	}
}

// once sends a request once.
func (c *Client) once(ctx context.Context, r *request) (failure, error) {
	outer := ctx
	if c.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Timeout)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return failure{}, fmt.Errorf("remote: %w", err)
	}
	if r.in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	res, err := c.o.HTTP.Do(req)
	if err != nil {
		return failure{lost: outer.Err() == nil}, fmt.Errorf("remote: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		if err := r.read(res.Body); err != nil {
			return failure{}, fmt.Errorf("remote: answer of %s: %w", r.path, err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<10)) // keeps the connection alive
		return failure{}, nil
	}
	return failureOf(res, time.Now(), c.o.MaxWait), problemOf(res)
}

// maxProblem bounds the bytes read of an error response.
const maxProblem = 1 << 20

// problemOf returns the error of a response.
func problemOf(res *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	e := &Error{Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil && kind == "application/problem+json" {
		err = json.Unmarshal(b, &e.Problem)
	} else {
		e.Detail = string(b[:min(len(b), 200)]) // not a response of pacer serve
	}
	if err != nil {
		return errors.Join(e, err)
	}
	return e
}
