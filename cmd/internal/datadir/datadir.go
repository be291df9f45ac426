package datadir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Dir is a data directory. It is created when something is first written to it.
type Dir struct {
	// Given is the directory of the user; "" takes the default one.
	Given string
	// Remote is the address of a server that has the rows, of --server; "" = they are in the directory.
	Remote string
	// Verb is the command that uses the directory, named in errors and hints.
	Verb string
	// Log receives warnings.
	Log io.Writer

	noted bool // that the directory does not exist
}

// Of returns the directory of --data, one Dir for the whole run.
func Of(c *cli.Context) *Dir {
	const key = "data directory"
	d, ok := c.App.Metadata[key].(*Dir)
	if !ok {
		d = &Dir{Given: command.Global(c, "data"), Remote: c.String("server"), Verb: c.Command.Name, Log: c.App.ErrWriter}
		c.App.Metadata[key] = d
	}
	return d
}

// Path returns the directory: Given, else $XDG_DATA_HOME/pacer, else ~/.local/share/pacer.
func (d *Dir) Path() (string, error) {
	if d.Given != "" {
		return d.Given, nil
	}
	if x := os.Getenv("XDG_DATA_HOME"); x != "" {
		return filepath.Join(x, "pacer"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no data directory: set --data DIR: %w", err)
	}
	return filepath.Join(home, ".local", "share", "pacer"), nil
}

// noteMissing warns once that the directory of the user does not exist.
func (d *Dir) noteMissing() {
	if d.Given == "" || d.noted {
		return
	}
	if _, err := os.Stat(d.Given); errors.Is(err, fs.ErrNotExist) {
		d.noted = true
		fmt.Fprintf(d.Log, "note: --data %s does not exist yet: it has no measurements and no fits\n", d.Given)
	}
}

// Open opens the store and creates it if needed. Without o.From, rows are stored as from d.Verb.
func (d *Dir) Open(o store.Options) (*store.DB, error) {
	dir, err := d.Path()
	if err != nil {
		return nil, err
	}
	o.From = cmp.Or(o.From, "pacer "+d.Verb)
	db, err := store.Open(filepath.Join(dir, "store"), o)
	return db, d.addServer(dir, err)
}

// Read calls use with the store opened for reading. Without a store it returns nil.
func (d *Dir) Read(use func(*store.DB) error) error {
	db, err := d.Open(store.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		d.noteMissing()
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

// ReadRows is Read for a query.Resolver.
func (d *Dir) ReadRows(use func(reader.Store) error) error {
	return d.Read(func(db *store.DB) error { return use(db) })
}

// Change calls use with the store opened for writing. Without a store it returns nil.
func (d *Dir) Change(use func(*store.DB) error) error {
	dir, err := d.Path()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); errors.Is(err, fs.ErrNotExist) {
		d.noteMissing()
		return nil
	}
	db, err := d.Open(store.Options{})
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

// Fitted opens the fitted models.
func (d *Dir) Fitted() (*registry.Registry, error) {
	dir, err := d.Path()
	if err != nil {
		return nil, err
	}
	d.noteMissing()
	return registry.Open(filepath.Join(dir, "models"))
}

// Resolver answers requests from the store and the fitted models.
func (d *Dir) Resolver() (*query.Resolver, error) {
	fitted, err := d.Fitted()
	if err != nil {
		return nil, err
	}
	warn := func(err error) { fmt.Fprintln(d.Log, "warning:", err) }
	return &query.Resolver{Read: d.ReadRows, Fitted: fitted, Warn: warn}, nil
}

// Rows returns the stored measurements that match f.
func (d *Dir) Rows(ctx context.Context, f store.Filter) ([]spec.Measurement, error) {
	return (&query.Resolver{Read: d.ReadRows}).Rows(ctx, f)
}

// MeasuredText returns spec.Accelerator.Measured of an accelerator by name, "" if it has no micro-benchmarks. A directory
// that does not exist is one that a campaign is about to make.
func (d *Dir) MeasuredText(ctx context.Context, accelerator string) (string, error) {
	quiet := *d
	quiet.noted = true
	return (&query.Resolver{Read: quiet.ReadServed}).MeasuredText(ctx, accelerator)
}

// Summary counts the stored measurements.
func (d *Dir) Summary(ctx context.Context) ([]store.Tally, error) {
	return (&query.Resolver{Read: d.ReadRows}).Summary(ctx)
}
