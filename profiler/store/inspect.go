package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// state is the result of inspect.
type state struct {
	empty     bool             // no store yet
	sealed    bool             // closed properly
	format    int              // format in versionFile
	emptyLogs []string         // log files of a writer that was killed before their first byte
	tornLogs  map[string]int64 // log files with an incomplete transaction, and the end of the last complete one
	temps     []string         // unfinished copies of a killed writer
}

// inspect checks all files of the store in dir and changes none. The engine must see only checked files: it
// drops data that it cannot read, deletes tables that its MANIFEST does not name, and ends the program on some
// kinds of damage.
func inspect(dir string) (state, error) {
	st := state{tornLogs: map[string]int64{}}
	names, temps, err := engineFiles(dir)
	if err != nil {
		return st, err
	}
	st.temps = temps
	if st.format, err = readVersion(dir); err != nil {
		return st, err
	}
	switch {
	case st.format > FormatVersion:
		return st, fmt.Errorf("%s is in format %d, this program reads formats up to %d: use a newer program: %w", dir, st.format, FormatVersion, ErrNewer)
	case len(names) == 0:
		st.empty = true
		return st, nil
	case st.format == 0:
		return st, corrupt(dir, versionFile, errors.New("the file is missing"))
	}
	if st.sealed, err = checkSeal(dir); err != nil || st.sealed {
		return st, err
	}
	return st, st.inspectCrashed(dir, names)
}

// prepare makes inspected files ready for writing.
func (st state) prepare(dir string) error {
	if st.format != FormatVersion {
		if err := writeVersion(dir, FormatVersion); err != nil {
			return err
		}
	}
	for _, name := range append(st.emptyLogs, st.temps...) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for name, end := range st.tornLogs {
		if err := os.Truncate(filepath.Join(dir, name), end); err != nil {
			return err
		}
	}
	if !st.sealed {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, sealFile)); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// engineFiles returns the names of the engine's files in dir, and the names of unfinished copies of the store's
// own files.
func engineFiles(dir string) (names, temps []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		n := e.Name()
		if sealedFile(n) && n != versionFile {
			names = append(names, n)
		}
		for _, own := range []string{sealFile, versionFile, attemptsFile, batchFile} {
			if strings.HasPrefix(n, "."+own+".") {
				temps = append(temps, n)
			}
		}
	}
	return names, temps, nil
}

// inspectCrashed checks the files of a store with a killed writer. The data being written may be incomplete;
// everything else must be complete.
func (st *state) inspectCrashed(dir string, names []string) error {
	tables, err := readManifest(dir)
	if err != nil {
		return err
	}
	seen := crashed{newest: 0, orphans: map[string]uint64{}}
	for _, name := range names {
		if err := st.inspectFile(dir, name, tables, &seen); err != nil {
			return corrupt(dir, name, err)
		}
	}
	for id := range tables { // tables without a file
		return corrupt(dir, fmt.Sprintf("%06d.sst", id), errors.New("the file is missing"))
	}
	return seen.checkOrphans(dir)
}

// crashed collects the transactions found in the files of a crashed store.
type crashed struct {
	newest  uint64            // newest transaction in all tables that the MANIFEST names
	logs    []span            // of each memtable log
	orphans map[string]uint64 // newest transaction in each complete table that the MANIFEST does not name
}

// span is the first and the last transaction of a log.
type span struct{ first, last uint64 }

// inspectFile checks one file of a crashed store. If it is a table, it removes it from tables.
func (st *state) inspectFile(dir, name string, tables map[uint64]badger.TableManifest, seen *crashed) error {
	path := filepath.Join(dir, name)
	switch ext := filepath.Ext(name); {
	case ext == ".sst":
		id, err := strconv.ParseUint(strings.TrimSuffix(name, ext), 10, 64)
		if err != nil {
			return err
		}
		t, named := tables[id]
		if !named {
			t.Compression = tableCompression
		}
		newest, err := inspectTable(path, id, t)
		switch {
		case named && err != nil:
			return err
		case named:
			delete(tables, id)
			seen.newest = max(seen.newest, newest)
		case err == nil: // otherwise the table was being built
			seen.orphans[name] = newest
		}
	case ext == ".mem" || ext == ".vlog":
		w, empty, err := inspectLog(path, ext == ".mem")
		if err != nil {
			return err
		}
		if empty {
			st.emptyLogs = append(st.emptyLogs, name)
			return nil
		}
		if w.torn {
			st.tornLogs[name] = int64(w.whole)
		}
		if ext == ".mem" {
			seen.logs = append(seen.logs, w.txns)
		}
	case name == "KEYREGISTRY":
		return inspectKeys(path)
	}
	return nil
}

// checkOrphans detects a MANIFEST that lost its end: the engine would delete the tables that it no longer
// names. A new table of a killed writer is no problem, since its rows are still in the log. A compacted one is
// not newer than the tables that it replaces.
func (c crashed) checkOrphans(dir string) error {
	for name, newest := range c.orphans {
		found := newest <= c.newest
		for _, l := range c.logs {
			found = found || l.first <= newest && newest <= l.last
		}
		if !found {
			return corrupt(dir, badger.ManifestFilename, fmt.Errorf("it does not name %s, and its rows are in no other file", name))
		}
	}
	return nil
}

func readManifest(dir string) (map[uint64]badger.TableManifest, error) {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, corrupt(dir, badger.ManifestFilename, errors.New("the file is missing"))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, _, err := badger.ReplayManifestFile(f, engineMagic, badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		return nil, corrupt(dir, badger.ManifestFilename, err)
	}
	return m.Tables, nil
}
