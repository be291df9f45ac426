package datadir

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
)

// A command waits so long for a server that is restarted, and so long for one answer.
const (
	servedPatience = 2 * time.Minute
	servedTimeout  = time.Minute
)

// OpenServed opens the store for writing, or returns a client of the server at an address, or of the one that has the store
// open if that is "", with the token of the environment.
func (d *Dir) OpenServed(at string, o store.Options) (*store.DB, *remote.Client, error) {
	if at == "" {
		db, err := d.Open(o)
		served := false
		if at, served = d.Server(err); !served {
			return db, nil, err
		}
	}
	c, err := remote.New(at, remote.Options{Token: os.Getenv(command.TokenVariable), Patience: servedPatience, Timeout: servedTimeout})
	return nil, c, err
}

// ServerFlag names the server of OpenServed.
func ServerFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "server", Usage: "post what is measured to the pacer serve at `URL`. $" + command.TokenVariable + " is its token",
		DefaultText: "that which has the data directory open, if any", Category: category}
}

// ServedRows returns the measurements of a server's store that f chooses.
func ServedRows(ctx context.Context, c *remote.Client, f store.Filter) ([]spec.Measurement, error) {
	var b bytes.Buffer
	if err := c.Export(ctx, &b, "parquet", remote.Filter{Models: f.Models, Accelerators: f.Accelerators, Sources: f.Sources}); err != nil {
		return nil, err
	}
	var rows []spec.Measurement
	for m, err := range rowfile.ReadParquetFrom(c.Address(), bytes.NewReader(b.Bytes()), int64(b.Len())) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, m)
	}
	return rows, nil
}
