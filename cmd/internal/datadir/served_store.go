package datadir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Served is a store that a server has open, read and written over HTTP. It is a profiler.Sink.
type Served struct {
	URL   string
	Token string // "" = none
	// Patience is the time in which a server that is restarted must answer again.
	Patience time.Duration
}

// maxServed bounds an export that is read.
const maxServed = 1 << 30

// Rows returns the stored measurements that f chooses.
func (s *Served) Rows(ctx context.Context, f store.Filter) ([]spec.Measurement, error) {
	q := url.Values{"model": f.Models, "accelerator": f.Accelerators, "source": f.Sources, "format": {"parquet"}}
	b, err := s.ask(ctx, http.MethodGet, "/v1/measurements/export?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var rows []spec.Measurement
	for m, err := range store.ReadParquetFrom(s.URL, bytes.NewReader(b), int64(len(b))) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, m)
	}
	return rows, nil
}

// Put stores measurements: when it returns nil, the server has them on disk. Those of a call that is repeated are not
// stored twice.
func (s *Served) Put(ctx context.Context, ms ...spec.Measurement) error {
	_, err := s.ask(ctx, http.MethodPost, "/v1/measurements", map[string]any{"measurements": ms})
	return err
}

// Post posts a body of the API once, within timeout.
func (s *Served) Post(ctx context.Context, path string, body any, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, _, err = s.once(ctx, http.MethodPost, path, b)
	return err
}

// ask sends a request until it is answered or Patience is over.
func (s *Served) ask(ctx context.Context, method, path string, body any) (answer []byte, err error) {
	var b []byte
	if body != nil {
		if b, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	end := time.Now().Add(s.Patience)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		answer, again, err := s.once(ctx, method, path, b)
		if err == nil || !again || time.Now().After(end) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// maxAsk bounds the time of one request.
const maxAsk = time.Minute

// once sends a request; again is whether it may succeed later.
func (s *Served) once(outer context.Context, method, path string, body []byte) (answer []byte, again bool, err error) {
	ctx, cancel := context.WithTimeout(outer, maxAsk)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, false, fmt.Errorf("server: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.Token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, outer.Err() == nil, fmt.Errorf("server: %w", err)
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxServed))
	switch {
	case res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusTooManyRequests:
		return nil, true, fmt.Errorf("server: %s answers %s: %.1000s", s.URL, res.Status, answer)
	case res.StatusCode != http.StatusOK:
		return nil, false, fmt.Errorf("server: %s answers %s: %.1000s", s.URL, res.Status, answer)
	case err != nil:
		return nil, true, fmt.Errorf("server: %w", err)
	}
	return answer, false, nil
}

// servedPatience is how long a campaign waits for a server that is restarted.
const servedPatience = 2 * time.Minute

// OpenServed opens the store for writing, or returns the server that has it open.
func (d *Dir) OpenServed(o store.Options, token string) (*store.DB, *Served, error) {
	db, err := d.Open(o)
	if at, served := d.Server(err); served {
		return nil, &Served{URL: at, Token: token, Patience: servedPatience}, nil
	}
	return db, nil, err
}
