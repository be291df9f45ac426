package rowfile

import (
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Format is a file format of exported measurements.
type Format string

const (
	Parquet Format = "parquet"
	Arrow   Format = "arrow" // Arrow IPC file, also known as Feather v2
)

// FormatOf returns the format for the extension of path.
func FormatOf(path string) (Format, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".parquet", ".pq":
		return Parquet, nil
	case ".arrow", ".feather", ".ipc":
		return Arrow, nil
	default:
		return "", fmt.Errorf("rowfile: %s: the extension %q is not a known format, want .parquet or .arrow", path, ext)
	}
}

// ExportFile writes the rows of seq to path and returns their number. It replaces the file atomically: on an
// error, path is unchanged.
func ExportFile(path string, f Format, seq iter.Seq2[spec.Measurement, error]) (n int, err error) {
	write := WriteParquet
	switch f {
	case Parquet:
	case Arrow:
		write = WriteArrow
	default:
		return 0, fmt.Errorf("rowfile: unknown format %q, want %s or %s", f, Parquet, Arrow)
	}
	var werr error
	err = atomicfile.Write(path, 0o644, func(w io.Writer) error {
		n, werr = write(w, seq)
		return werr
	})
	switch {
	case werr != nil:
		return n, fmt.Errorf("%w; %s was not written", werr, path)
	case err != nil:
		return n, fmt.Errorf("rowfile: export: %w", err)
	}
	return n, nil
}
