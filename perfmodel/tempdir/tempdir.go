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
	owner *os.File // holds the lock, nil on platforms without locks
}

// ownerFile is in every directory with an owner. The owner locks it before renaming it to this name, and holds
// the lock until the process ends. If another process can take the lock, the owner has ended.
const ownerFile = "owner"

// New makes a directory in parent ("" is os.TempDir) with a name that begins with prefix. The caller calls
// Remove. New first removes directories with this prefix in parent that ended processes of this user left, and
// ignores failures to do so.
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

// Path returns the path of a file in the directory, or of the directory itself for "".
func (d *Dir) Path(file string) string { return filepath.Join(d.path, file) }

// Remove removes the directory with its content. If that fails, a later New removes it.
func (d *Dir) Remove() {
	_ = os.RemoveAll(d.path)
	if d.owner != nil {
		_ = d.owner.Close() // no error to report: nothing was written to it
	}
}

// sweep removes the directories of ended processes. It ignores directories that it cannot inspect: they may
// belong to another user.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if path := filepath.Join(parent, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), prefix) && abandoned(path) {
			_ = os.RemoveAll(path) // a failure is harmless
		}
	}
}
