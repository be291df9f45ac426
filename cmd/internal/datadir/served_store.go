package datadir

import (
	"context"
	"iter"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// A command waits so long for a server that is restarted, and so long for one answer.
const (
	servedPatience = 2 * time.Minute
	servedTimeout  = time.Minute
)

// Rows are the stored measurements of a directory: its store, or the server that has it open. It is a reader.Store and a
// profiler.Sink.
type Rows struct {
	DB     *store.DB      // nil = a server has it open
	Served *remote.Client // that server
}

// OpenRows opens the store for writing, or returns a client of the server that has it open, or of Remote, with the token
// of the environment.
func (d *Dir) OpenRows(o store.Options) (*Rows, error) {
	if d.Remote != "" {
		return servedRows(d.Remote)
	}
	db, err := d.Open(o)
	if at, served := d.Server(err); served {
		return servedRows(at)
	}
	if err != nil {
		return nil, err
	}
	return &Rows{DB: db}, nil
}

// ReadServed is ReadRows, also while a server has the store open, and from Remote.
func (d *Dir) ReadServed(use func(reader.Store) error) error {
	at := d.Remote
	if at == "" {
		err := d.ReadRows(use)
		var served bool
		if at, served = d.Server(err); !served {
			return err
		}
	}
	rows, err := servedRows(at)
	if err != nil {
		return err
	}
	defer rows.Close()
	return use(rows)
}

func servedRows(address string) (*Rows, error) {
	c, err := remote.New(address, remote.Options{Token: os.Getenv(command.TokenVariable), Patience: servedPatience, Timeout: servedTimeout})
	if err != nil {
		return nil, err
	}
	return &Rows{Served: c}, nil
}

// Close closes the store, or the connections to the server.
func (r *Rows) Close() error {
	if r.DB != nil {
		return r.DB.Close()
	}
	return r.Served.Close()
}

// PutAll stores rows, which are on disk when it returns.
func (r *Rows) PutAll(ctx context.Context, ms ...spec.Measurement) (store.Counts, error) {
	if r.DB != nil {
		return r.DB.PutAll(ctx, ms...)
	}
	n, err := r.Served.PutRows(ctx, perfmodel.Rows(ms))
	return store.Counts(n), err
}

// Put implements profiler.Sink.
func (r *Rows) Put(ctx context.Context, ms ...spec.Measurement) error {
	if r.DB != nil {
		return r.DB.Put(ctx, ms...)
	}
	return r.Served.Put(ctx, ms...)
}

// Origins returns the origins of the rows. A server does not list forgotten ones, which it counts when they are put.
func (r *Rows) Origins() *store.Origins {
	if r.DB != nil {
		return store.NewOrigins(r.DB)
	}
	return store.OriginsOf(func(ctx context.Context, source string) iter.Seq2[spec.Measurement, error] {
		return r.Query(ctx, store.Filter{Sources: []string{source}})
	})
}

// Query implements reader.Store.
func (r *Rows) Query(ctx context.Context, f store.Filter) iter.Seq2[spec.Measurement, error] {
	if r.DB != nil {
		return r.DB.Query(ctx, f)
	}
	return func(yield func(spec.Measurement, error) bool) {
		for m, err := range r.Served.Rows(ctx, remote.Filter{Models: f.Models, Accelerators: f.Accelerators, Sources: f.Sources}) {
			if err == nil && len(f.Outcomes) > 0 && !slices.Contains(f.Outcomes, m.Outcome) {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// Summary implements reader.Store.
func (r *Rows) Summary(ctx context.Context) ([]store.Tally, error) {
	if r.DB != nil {
		return r.DB.Summary(ctx)
	}
	var out struct {
		Measurements []store.Tally `json:"measurements"`
	}
	err := r.Served.Do(ctx, http.MethodGet, "/v1/measurements", nil, &out)
	return out.Measurements, err
}

// Measured implements reader.Store. A server has no operation for micro-benchmarks.
func (r *Rows) Measured(ctx context.Context) ([]spec.Accelerator, error) {
	if r.DB != nil {
		return r.DB.Measured(ctx)
	}
	return nil, nil
}

// MeasuredText implements reader.Store, as Measured.
func (r *Rows) MeasuredText(ctx context.Context, accelerator string) (string, error) {
	if r.DB != nil {
		return r.DB.MeasuredText(ctx, accelerator)
	}
	return "", nil
}

// ServerFlag names the server that a command stores its rows in.
func ServerFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "server", Usage: "post the rows to the pacer serve at `URL`. $" + command.TokenVariable + " is its token",
		DefaultText: "that which has the data directory open, if any", Category: category}
}
