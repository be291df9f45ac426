package scratch

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

// ownerFile is in every directory that has an owner. It is locked for as long as
// that lives, from before it has this name: whoever gets the lock has found a
// directory of the dead.
const ownerFile = "owner"

// New makes a directory in parent, "" being the one for temporary files, whose
// name begins with prefix. Those there that New made with the same prefix, for
// this user, in processes that have ended are removed first, as far as they can.
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

// Remove removes the directory with all that is in it. What cannot be removed
// now, a later New removes.
func (d *Dir) Remove() {
	_ = os.RemoveAll(d.path)
	if d.owner != nil {
		_ = d.owner.Close() // nothing was written to it
	}
}

// sweep removes the directories of ended processes. What cannot be looked at is
// left alone: it may be somebody's.
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
