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
	"net/http"
	"net/url"
	"strings"
	"time"

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
	// HTTP sends the requests; nil = a client with up to 256 idle connections.
	HTTP *http.Client
	// Retries is how often a request is repeated while the server is overloaded and
	// sends Retry-After; 0 = 4, below 0 = never.
	Retries int
	// MaxWait bounds the wait before each repetition; 0 = 10 s.
	MaxWait time.Duration
}

// Client sends requests to pacer serve. It is safe for concurrent use and implements
// scheduler.Oracle. Errors of the server are *Error.
type Client struct {
	base string
	o    Options
}

// New returns a client of the server at base, such as http://127.0.0.1:8470.
func New(base string, o Options) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("remote: %q is not the address of a server, want a form like http://127.0.0.1:8470", base)
	}
	if o.MaxWait < 0 {
		return nil, fmt.Errorf("remote: longest wait %v is negative", o.MaxWait)
	}
	if o.HTTP == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256
		o.HTTP = &http.Client{Transport: transport}
	}
	o.Retries = cmp.Or(o.Retries, 4)
	o.MaxWait = cmp.Or(o.MaxWait, 10*time.Second)
	return &Client{base: strings.TrimSuffix(base, "/"), o: o}, nil
}

// Predict returns the prediction of the server's performance model.
func (c *Client) Predict(ctx context.Context, cfg spec.Config) (spec.Prediction, error) {
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

// post sends in as JSON and decodes the response into out. It repeats the request
// while the server sends Retry-After.
func (c *Client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("remote: %w", err) // a number that is not finite
	}
	for try := 0; ; try++ {
		wait, again, err := c.once(ctx, path, body, out)
		if err == nil || !again || try >= c.o.Retries {
			return err
		}
		if stopped := sleep(ctx, wait); stopped != nil {
			return fmt.Errorf("remote: %w (after %d tries: %w)", stopped, try+1, err)
		}
	}
}

// once sends the request once. again is whether to repeat it, after wait.
func (c *Client) once(ctx context.Context, path string, body []byte, out any) (wait time.Duration, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, false, fmt.Errorf("remote: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	res, err := c.o.HTTP.Do(req)
	if err != nil {
		return 0, false, fmt.Errorf("remote: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			return 0, false, fmt.Errorf("remote: answer of %s: %w", path, err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<10)) // keeps the connection alive
		return 0, false, nil
	}
	wait, again = waitOf(res, time.Now(), c.o.MaxWait)
	return wait, again, problemOf(res)
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
