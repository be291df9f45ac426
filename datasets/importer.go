package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

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

// importTables is the Import of the data set name: all rows of all files, table by table.
func importTables(ctx context.Context, root fs.FS, name string, files func(fs.FS) ([]string, error),
	table func(ctx context.Context, root fs.FS, file string) iter.Seq2[spec.Measurement, error]) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		all, err := files(root)
		if err != nil {
			yield(spec.Measurement{}, fmt.Errorf("datasets: %s: %w", name, err))
			return
		}
		for _, file := range all {
			for m, err := range table(ctx, root, file) {
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

// ErrNotMeasurable marks valid rows that are too incomplete for a measurement: no step time can be
// derived and no memory was recorded. It is wrapped in a *RowError.
var ErrNotMeasurable = errors.New("neither a step time nor memory can be derived")

// RowError is an invalid value of a row. The row is skipped and reading continues.
type RowError struct {
	File   string
	Line   int    // 1 is the first; 0 = the whole file
	Column string // name of the column or key, "" = the whole row
	Value  string // as written
	Err    error
}

func (e *RowError) Error() string {
	var b strings.Builder
	b.WriteString("datasets: " + e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Column != "" {
		fmt.Fprintf(&b, "%s %q: ", e.Column, e.Value)
	}
	return b.String() + e.Err.Error()
}

func (e *RowError) Unwrap() error { return e.Err }

// Warnings returns the doubt about a measurement, and the legality rule its plan breaks.
func Warnings(m spec.Measurement) []error {
	var out []error
	if m.Doubt != "" {
		out = append(out, fmt.Errorf("datasets: %s: %s", m.Origin, m.Doubt))
	}
	if err := m.Config.Check(); err != nil {
		out = append(out, fmt.Errorf("datasets: %s: %w", m.Origin, err))
	}
	return out
}
