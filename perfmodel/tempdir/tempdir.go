package tempdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Dir is a directory that only this process uses.
type Dir struct {
	path  string
	owner *os.File // holds the lock, nil where there are none
}

// ownerFile is in every directory with an owner. The owner locks it before it gets
// this name, and until the process ends. So a lock that can be taken means that
// the owner has ended.
const ownerFile = "owner"

// New makes a directory in parent, "" being os.TempDir, with a name that begins
// with prefix. First it removes, as far as possible, those that ended processes of
// this user made there with the same prefix.
func New(parent, prefix string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent, prefix)
	path, err := os.MkdirTemp(parent, prefix+"*")
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path}
	if d.owner, err = own(path); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return d, nil
}

// Path returns the path of a file in the directory, of the directory itself
// without one.
func (d *Dir) Path(file string) string { return filepath.Join(d.path, file) }

// Remove removes the directory with its content. A later New removes what is left.
func (d *Dir) Remove() {
	_ = os.RemoveAll(d.path)
	if d.owner != nil {
		_ = d.owner.Close() // nothing was written to it
	}
}

// sweep removes the directories of ended processes. It leaves those it cannot
// inspect, which may be another user's.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if path := filepath.Join(parent, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), prefix) && abandoned(path) {
			_ = os.RemoveAll(path) // harmless where it stays
		}
	}
}
