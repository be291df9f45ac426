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
	// Token is sent as a bearer token; a server that listens to others than
	// this machine demands it.
	Token string
	// Family is the kind of performance model that answers; "" is the best
	// there is for each model and accelerator.
	Family string
	// HTTP sends the requests; nil is a client that keeps connections for as
	// many callers as there are.
	HTTP *http.Client
	// Retries is how often a request is sent again when the server says it is
	// overloaded and when to come back; 0 = 4, below 0 = never.
	Retries int
	// MaxWait bounds the wait before each; 0 = 10 s.
	MaxWait time.Duration
}

// Client asks a server of pacer serve. It is safe for concurrent use, and a
// scheduler.Oracle.
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

// Predict returns what the server's performance model says of c.
func (c *Client) Predict(ctx context.Context, cfg spec.Config) (spec.Prediction, error) {
	var out Prediction
	err := c.ask(ctx, PathPredict, PredictRequest{cfg, c.o.Family}, &out)
	return out.Prediction(), err
}

// Best returns the best choice that fits, or an error that wraps
// planner.ErrInfeasible.
func (c *Client) Best(ctx context.Context, r planner.Request) (planner.Choice, error) {
	var out Choice
	err := c.ask(ctx, PathBest, c.plan(r), &out)
	return out.Planner(), err
}

// Rank returns the choices of a request, best first.
func (c *Client) Rank(ctx context.Context, r planner.Request) (planner.Ranking, error) {
	var out Ranking
	if err := c.ask(ctx, PathRank, c.plan(r), &out); err != nil {
		return planner.Ranking{}, err
	}
	return out.Planner(), nil
}

// Curve returns the sensitivity curve of a request.
func (c *Client) Curve(ctx context.Context, r planner.Request) (planner.Curve, error) {
	var out Curve
	if err := c.ask(ctx, PathCurve, c.plan(r), &out); err != nil {
		return planner.Curve{}, err
	}
	return out.Planner()
}

func (c *Client) plan(r planner.Request) PlanRequest { return PlanRequest{FromRequest(r), c.o.Family} }

// ask posts in as JSON and reads the answer into out, and again as long as the
// server says when to come back.
func (c *Client) ask(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("remote: %w", err) // a figure that is not finite
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

// once is one try; again says whether, and wait when, the server wants another.
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
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<10)) // so that the connection is kept
		return 0, false, nil
	}
	wait, again = waitOf(res, time.Now(), c.o.MaxWait)
	return wait, again, problemOf(res)
}

// maxProblem bounds what is read of an error answer.
const maxProblem = 1 << 20

// problemOf reads the error a server answered with.
func problemOf(res *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	e := &Error{Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil && kind == "application/problem+json" {
		err = json.Unmarshal(b, &e.Problem)
	} else {
		e.Detail = string(b[:min(len(b), 200)]) // no server of ours
	}
	if err != nil {
		return errors.Join(e, err)
	}
	return e
}
