package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// FormatVersion is the format of a store as a whole, its keys and files, of its backups and of its changes. rowFormat is the
// format of the rows and their keys, which is converted to by moving rows.
const (
	FormatVersion = 4
	rowFormat     = 2
)

// versionFile contains the newest format of any part of the store. It is read before the engine opens, so that
// a newer store is not touched, and is raised before a migration starts. The key "f" records the progress of a
// migration.
const versionFile = "VERSION"

const versionText = "pacer measurement store, format %d\n"

// readVersion returns the format in versionFile, 0 without a file.
func readVersion(dir string) (int, error) {
	b, err := os.ReadFile(filepath.Join(dir, versionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var v int
	if _, err := fmt.Sscanf(string(b), versionText, &v); err != nil || v < 1 || fmt.Sprintf(versionText, v) != string(b) {
		return 0, corrupt(dir, versionFile, fmt.Errorf("%q is not a format", firstBytes(b)))
	}
	return v, nil
}

func writeVersion(dir string, v int) error {
	return atomicfile.Write(filepath.Join(dir, versionFile), 0o644, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, versionText, v)
		return err
	})
}

// firstBytes returns as much of b as an error shows.
func firstBytes(b []byte) []byte { return b[:min(40, len(b))] }
