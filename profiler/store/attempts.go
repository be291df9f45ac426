package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// attemptsFile records the points being measured, so that they are known after a crash. It exists only during a
// measurement.
const attemptsFile = "ATTEMPTS"

// An attempt is the point that a run is measuring, or was measuring when it was killed.
type attempt struct {
	Point string `json:"point"`
	Times int    `json:"times"` // number of times in a row that it was begun
}

// Begin records durably that a run starts to measure a point. before is the number of times in a row that the
// run began this point, without beginning another one or calling End: it was killed each time. Begin and End
// make a DB a profiler.Journal.
func (db *DB) Begin(run, point string) (before int, err error) {
	err = db.attempts("begin", func(all map[string]attempt) bool {
		if was := all[run]; was.Point == point {
			before = was.Times
		}
		all[run] = attempt{point, before + 1}
		return true
	})
	return before, err
}

// End deletes the record of a run.
func (db *DB) End(run string) error {
	return db.attempts("end", func(all map[string]attempt) bool {
		_, noted := all[run]
		delete(all, run)
		return noted
	})
}

// attempts calls change with the recorded attempts by run, and stores them if change returns true.
func (db *DB) attempts(what string, change func(all map[string]attempt) bool) error {
	if err := db.use(); err != nil {
		return err
	}
	defer db.done()
	if db.opt.ReadOnly {
		return fmt.Errorf("store: %s a point in %s: %w", what, db.dir, ErrReadOnly)
	}
	db.writing.Lock()
	defer db.writing.Unlock()
	all, err := readAttempts(db.dir)
	if err == nil && change(all) {
		err = writeAttempts(db.dir, all)
	}
	if err != nil {
		return fmt.Errorf("store: %s: %s a point: %w", db.dir, what, err)
	}
	return nil
}

func readAttempts(dir string) (map[string]attempt, error) {
	all := map[string]attempt{}
	text, err := os.ReadFile(filepath.Join(dir, attemptsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &all); err != nil || all == nil {
		return nil, fmt.Errorf("%s cannot be read (%w); remove it: points at which a run was killed are then tried again", attemptsFile, errors.Join(err, ErrCorrupt))
	}
	return all, nil
}

func writeAttempts(dir string, all map[string]attempt) error {
	path := filepath.Join(dir, attemptsFile)
	if len(all) == 0 {
		return errors.Join(os.Remove(path), atomicfile.SyncDir(dir))
	}
	return atomicfile.Write(path, 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(all) })
}
