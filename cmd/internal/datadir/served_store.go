package datadir

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
)

// A command waits so long for a server that is restarted, and so long for one answer.
const (
	servedPatience = 2 * time.Minute
	servedTimeout  = time.Minute
)

// OpenServed opens the store for writing, or returns a client of the server that has it open, with the token of the
// environment.
func (d *Dir) OpenServed(o store.Options) (*store.DB, *remote.Client, error) {
	db, err := d.Open(o)
	if at, served := d.Server(err); served {
		c, err := remote.New(at, remote.Options{Token: os.Getenv(command.TokenVariable), Patience: servedPatience, Timeout: servedTimeout})
		return nil, c, err
	}
	return db, nil, err
}

// ServedRows returns the measurements of a server's store that f chooses.
func ServedRows(ctx context.Context, c *remote.Client, f store.Filter) ([]spec.Measurement, error) {
	var b bytes.Buffer
	if err := c.Export(ctx, &b, "parquet", remote.Filter{Models: f.Models, Accelerators: f.Accelerators, Sources: f.Sources}); err != nil {
		return nil, err
	}
	var rows []spec.Measurement
	for m, err := range store.ReadParquetFrom(c.Address(), bytes.NewReader(b.Bytes()), int64(b.Len())) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, m)
	}
	return rows, nil
}
