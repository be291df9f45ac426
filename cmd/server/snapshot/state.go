package snapshot

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// state is what a data directory knows of the snapshots.
type state struct {
	ID     string `json:"id"`     // of the directory
	Term   int64  `json:"term"`   // of the writer here, or of the objects that were applied here
	Number int64  `json:"number"` // of the last object that was applied here
	Writer bool   `json:"writer"` // the store has everything of Term, since it was put from here
	Copy   bool   `json:"copy"`   // what the store has came from the bucket
}

const stateFile = "snapshots.json"

// readState returns the state of a data directory, one with a new ID if it has none.
func readState(dir string) (s state, err error) {
	path := filepath.Join(dir, stateFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{ID: rand.Text()}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, fmt.Errorf("snapshot: %s: %w", path, err)
	}
	return s, nil
}

// write puts s on the disk of a data directory.
func (s state) write(dir string) error {
	b, err := json.Marshal(s)
	if err == nil {
		err = atomicfile.WriteBytes(filepath.Join(dir, stateFile), 0o600, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

func (s state) place() place { return place{s.Term, s.Number} }

// holder identifies the directory for a lease: a copy of it elsewhere is another holder.
func (s state) holder(dir string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	return s.ID + " " + host + " " + abs, nil
}
