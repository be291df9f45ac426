package remote

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/url"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Filter selects stored measurements by any of the names that the server knows; an empty field selects all.
type Filter struct {
	Models       []string `json:"model,omitempty"`
	Accelerators []string `json:"accelerator,omitempty"`
	Sources      []string `json:"source,omitempty"`
}

func (f Filter) query() url.Values {
	return url.Values{"model": f.Models, "accelerator": f.Accelerators, "source": f.Sources}
}

// Stored counts stored measurements.
type Stored struct {
	Added     int `json:"added"`     // new
	Updated   int `json:"updated"`   // known, with other figures: replaced
	Unchanged int `json:"unchanged"` // known
	Forgotten int `json:"forgotten"` // not stored: pacer store forget deleted them
}

// Total returns the number of rows.
func (s Stored) Total() int { return s.Added + s.Updated + s.Unchanged + s.Forgotten }

func (s *Stored) add(t Stored) {
	s.Added += t.Added
	s.Updated += t.Updated
	s.Unchanged += t.Unchanged
	s.Forgotten += t.Forgotten
}

// Put stores up to 10,000 measurements, all or none: when it returns nil, the server has them on disk. A repetition
// stores none twice, since each call has an idempotency key. It implements profiler.Sink.
func (c *Client) Put(ctx context.Context, ms ...spec.Measurement) error {
	_, err := c.put(ctx, ms)
	return err
}

// put is Put with what was stored.
func (c *Client) put(ctx context.Context, ms []spec.Measurement) (out Stored, err error) {
	if len(ms) == 0 {
		return out, nil
	}
	in := struct {
		Measurements []spec.Measurement `json:"measurements"`
	}{ms}
	err = c.send(ctx, &request{method: http.MethodPost, path: "/v1/measurements", in: in, key: rand.Text(), repeat: true, read: decoder(&out)})
	return out, err
}

// Export writes the stored measurements that f selects to w in a format, "arrow" or "parquet". After an error w may have
// a part of them.
func (c *Client) Export(ctx context.Context, w io.Writer, format string, f Filter) error {
	q := f.query()
	q.Set("format", format)
	return c.Copy(ctx, w, "/v1/measurements/export?"+q.Encode())
}

// Backup writes a copy of the server's store to w, for pacer store restore. After an error w may have a part of it.
func (c *Client) Backup(ctx context.Context, w io.Writer) error { return c.Copy(ctx, w, "/v1/backup") }

// Copy writes the answer of a GET to w, whatever it is. After an error w may have a part of it.
func (c *Client) Copy(ctx context.Context, w io.Writer, path string) error {
	return c.send(ctx, &request{method: http.MethodGet, path: path, repeat: true, read: func(r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	}})
}
