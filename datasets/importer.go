package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Importer reads one public data set.
type Importer struct {
	Name    string // as in pacer import NAME
	Doc     string
	License string // of the data
	URL     string // where it is published
	Commit  string // the revision the reader was written for; "" = several

	// Import yields every row below root as a measurement or a *RowError, by file name and line.
	// Any other error ends it: there is no file of the data set, a file cannot be read, or ctx
	// ended.
	Import func(ctx context.Context, root fs.FS) iter.Seq2[spec.Measurement, error]

	// Count returns the number of rows that Import will yield, errors included, for a progress bar.
	// Its error is that of Import.
	Count func(root fs.FS) (int, error)
}

var importers = named.NewSet[Importer]("datasets", "data set")

func register(i Importer) { importers.Add(i.Name, i) }

// Importers returns every importer, by name.
func Importers() []Importer { return importers.All() }

// Lookup returns the importer with a name. The error for an unknown one lists all names, nearest
// first.
func Lookup(name string) (Importer, error) { return importers.Get(name) }

// ReadAll returns all rows of the data set name below root: measurements, and a *RowError for each
// invalid row. Its error is that of Lookup, or the one that ended the import.
func ReadAll(ctx context.Context, name string, root fs.FS) (rows []spec.Measurement, bad []error, err error) {
	i, err := Lookup(name)
	if err != nil {
		return nil, nil, err
	}
	return splitErrors(i.Import(ctx, root))
}

// splitErrors returns the measurements and the row errors of an import.
func splitErrors(rows iter.Seq2[spec.Measurement, error]) (good []spec.Measurement, bad []error, err error) {
	for m, err := range rows {
		var row *RowError
		switch {
		case err == nil:
			good = append(good, m)
		case errors.As(err, &row):
			bad = append(bad, err)
		default:
			return good, bad, err
		}
	}
	return good, bad, nil
}

// A tableReader yields the rows of one file of a data set.
type tableReader func(ctx context.Context, root fs.FS, file string) iter.Seq2[spec.Measurement, error]

// registerTables registers a data set of CSV tables that are read one after another. Count is the
// number of their rows, unless i has its own.
func registerTables(i Importer, files func(fs.FS) ([]string, error), read tableReader) {
	i.Import = func(ctx context.Context, root fs.FS) iter.Seq2[spec.Measurement, error] {
		return importTables(ctx, root, i.Name, files, read)
	}
	if i.Count == nil {
		i.Count = func(root fs.FS) (int, error) {
			all, err := files(root)
			return table.CountRows(root, i.Name, all, err)
		}
	}
	register(i)
}

// importTables yields all rows of all files of the data set name, file by file.
func importTables(ctx context.Context, root fs.FS, name string, files func(fs.FS) ([]string, error), read tableReader) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		all, err := files(root)
		if err != nil {
			yield(spec.Measurement{}, fmt.Errorf("datasets: %s: %w", name, err))
			return
		}
		for _, file := range all {
			for m, err := range read(ctx, root, file) {
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

// convertRows yields the measurement of each row, or its error.
func convertRows(rows iter.Seq2[*table.Record, error], convert func(*table.Record) (spec.Measurement, error)) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		for rec, err := range rows {
			var m spec.Measurement
			if err == nil {
				m, err = convert(rec)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// ErrNotMeasurable marks valid rows that are too incomplete for a measurement: no step time can be
// derived and no memory was recorded. It is wrapped in a *RowError.
var ErrNotMeasurable = errors.New("neither a step time nor memory can be derived")

// RowError is an invalid value of a row, with its place. The row is skipped and reading continues.
type RowError = table.RowError

// Warnings returns the doubt about a measurement, and the legality rule its plan breaks.
func Warnings(m spec.Measurement) []error {
	var out []error
	if why := m.DoubtReason(); why != "" {
		out = append(out, fmt.Errorf("datasets: %s: %s", m.Origin, why))
	}
	if err := m.Config.Check(); err != nil {
		out = append(out, fmt.Errorf("datasets: %s: %w", m.Origin, err))
	}
	return out
}
