package datasets

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"sync"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Importer reads one public data set. All fields are required, except Commit and Notes.
type Importer struct {
	Name    string // as in pacer import NAME
	Doc     string // one line, with the paper
	License string // of the data
	URL     string // of the repository, https://...; else where each row says that it is from
	Commit  string // of the repository that the reader was written for, 40 digits; "" without a repository
	Dir     string // what DIR may be in pacer import NAME DIR, after "DIR is"

	// Open finds the files of the data set below root. It is an error if no file has its columns.
	Open func(root fs.FS) (Rows, error)
	// Notes names what is not read of the files below root; nil = nothing.
	Notes func(root fs.FS) []string
}

// Rows are the rows of a data set below a folder.
type Rows interface {
	// All yields every row as a measurement or a *RowError, by file name and line. Any other error
	// ends it: a file cannot be read, or ctx ended. Measurement.Origin is the same whichever folder of
	// the repository was opened.
	All(ctx context.Context) iter.Seq2[spec.Measurement, error]
	// Count returns the number of values that All will yield, errors included, for a progress bar. It
	// is an error if a file cannot be read, so that nothing is stored then.
	Count() (int, error)
}

// Import yields the rows below root as Rows.All does, or the error of Open.
func (i Importer) Import(ctx context.Context, root fs.FS) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		rows, err := i.Open(root)
		if err != nil {
			yield(spec.Measurement{}, err)
			return
		}
		rows.All(ctx)(yield)
	}
}

// importers is the table of all importers.
var importers = sync.OnceValue(func() *named.Set[Importer] {
	set := named.NewSet[Importer]("datasets", "data set")
	for _, i := range []Importer{dl2Importer, gavelImporter, publishedImporter, rubickImporter, siaImporter} {
		set.Add(i.Name, i)
	}
	return set
})

// Importers returns every importer, by name.
func Importers() []Importer { return importers().All() }

// Lookup returns the importer with a name. The error for an unknown one lists all names, nearest
// first.
func Lookup(name string) (Importer, error) { return importers().Get(name) }

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
